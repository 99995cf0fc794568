#include "base/configuration/config.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/configuration/settings.hh"
#include "base/schemes.hh"
#include "base/temporary_folder.hh"

namespace outboard {
namespace {

struct config_test : testing::Test {
  config_test() {
    folder = make_temporary_folder("outboard-config").value();
    sources.files = {folder + "/system.toml", folder + "/user.toml"};
    sources.variable = [this](const char* name_of) -> const char* {
      const auto at = environment.find(name_of);
      return at == environment.end() ? nullptr : at->second.c_str();
    };
  }
  ~config_test() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text, int mode = 0600) {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), static_cast<mode_t>(mode));
    return path;
  }
  std::string problem() {
    const auto c = load_config(sources);
    return c.ok() ? "none" : c.error().message.substr(folder.size() + 1);
  }

  std::string folder;
  config_sources sources;
  std::map<std::string, std::string> environment;
};

TEST_F(config_test, has_defaults_without_any_layer) {
  const auto c = load_config(sources);
  ASSERT_TRUE(c.ok());
  EXPECT_TRUE(c->servers.empty());
  EXPECT_EQ(c->device, device_choice::automatic);
  EXPECT_EQ(c->pool.per_key, 1u);
  EXPECT_EQ(c->limits.keepalive_seconds, 30u);
}

TEST_F(config_test, reads_what_clients_are_to_see_and_refuses_nonsense) {
  write("user.toml", "[devices]\nvisible = [\"1\", \"GPU-ab\"]\nname = \"Lab {name}\"\nmemory = \"8GiB\"\n");
  const auto c = load_config(sources);
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->shape.visible, (std::vector<std::string>{"1", "GPU-ab"}));
  EXPECT_EQ(c->shape.name, "Lab {name}");
  EXPECT_EQ(c->shape.memory, 8ull << 30);
  for (const char* bad :
       {"visible = []", "visible = [\"0\", \"0\"]", "visible = 0", "visible = [\"\"]", "name = \"\"",
        "name = 3", "name = \"a\\nb\"", "name = \"{nmae}\"", "name = \"{name} {name}\"", "memory = \"1MiB\"",
        "memory = -1", "memory = \"a lot\"", "memory = \"99999TiB\""}) {
    write("user.toml", "[devices]\n" + std::string(bad) + "\n");
    EXPECT_EQ(problem().substr(0, 20), "user.toml:2: devices") << bad << ": " << problem();
  }
}

TEST_F(config_test, lays_user_over_system_and_environment_over_both) {
  write("system.toml", "server = [\"unix:/run/a\", \"tcp:gpu\"]\nlog = \"warn\"\ndevice = \"cpu\"\n");
  write("user.toml", "log = \"info\"\n[pool]\nper_key = 3\n");
  environment["OUTBOARD_LOG"] = "debug";
  const auto c = load_config(sources);
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->servers, (std::vector<std::string>{"unix:/run/a", "tcp:gpu:26882"}));
  EXPECT_EQ(c->log, log::level::debug);
  EXPECT_EQ(c->device, device_choice::cpu);
  EXPECT_EQ(c->pool.per_key, 3u);
  EXPECT_EQ(c->sources.size(), 2u);
}

TEST_F(config_test, reads_everything_that_is_documented) {
  write("user.toml", R"(
server = "tcp:[::1]"
listen = ["unix:/run/o.sock", "tcp:0.0.0.0:1"]
token_file = "secret"
tokens_file = "names"
tls = "require"
insecure = true
allow_users = ["alice", "1001"]
log_format = "json"
sync = true
rings = false
data_connections = 2
compression = false
module_cache = false
wait_seconds = 3600
find_addresses = false
concurrent_managed = false
trace = "/tmp/t"
[limits]
sessions = 7
running = 4
hello_seconds = 2
[cache]
directory = "cache"
size = "64MiB"
[compiler_cache]
directory = "/kernels"
size = 0
per_identity = "1MiB"
[certificates]
server = "box.pem"
known_servers = "/k"
[worker]
confine = "require"
reads = ["lib", "/opt/one"]
[cpu]
compute_capability = "8.6"
memory = "1GiB"
cores = 2
kernel_timeout_seconds = 9
[transport.ring]
library = "/opt/ring.so"
)");
  const auto c = load_config(sources);
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->servers, std::vector<std::string>{"tcp:[::1]:26882"});
  EXPECT_EQ(c->listen.size(), 2u);
  EXPECT_FALSE(c->rings);
  EXPECT_EQ(c->data_connections, 2u);
  EXPECT_FALSE(c->compression);
  EXPECT_FALSE(c->module_cache);
  EXPECT_EQ(c->cache.directory, folder + "/cache");
  EXPECT_EQ(c->cache.size, 64u << 20);
  EXPECT_EQ(c->compiler_cache.directory, "/kernels");
  EXPECT_EQ(c->compiler_cache.size, 0u);
  EXPECT_EQ(c->compiler_cache.per_identity, 1u << 20);
  EXPECT_EQ(c->tls, tls_choice::required);
  EXPECT_EQ(c->certificates.server, folder + "/box.pem");
  EXPECT_EQ(c->certificates.known_servers, "/k");
  EXPECT_EQ(c->confine, confine_choice::required);
  EXPECT_EQ(c->confined_reads, (std::vector<std::string>{folder + "/lib", "/opt/one"}));
  EXPECT_EQ(c->wait_seconds, 3600u);
  EXPECT_EQ(c->limits.running, 4u);
  EXPECT_FALSE(c->find_addresses);
  EXPECT_FALSE(c->concurrent_managed);
  EXPECT_EQ(c->token_file, folder + "/secret");
  EXPECT_EQ(c->tokens_file, folder + "/names");
  EXPECT_EQ(c->format, log_format::json);
  EXPECT_EQ(c->limits.sessions, 7u);
  EXPECT_EQ(c->cpu.memory, 1ull << 30);
  EXPECT_EQ(c->cpu.capability, 86u);
  EXPECT_EQ(c->origins.at("limits.sessions"), folder + "/user.toml:20");
  EXPECT_FALSE(c->origins.contains("device"));
  EXPECT_EQ(c->plugins, (std::vector<std::pair<std::string, std::string>>{{"ring", "/opt/ring.so"}}));
}

TEST_F(config_test, names_file_line_and_accepted_values_of_an_error) {
  write("user.toml", "log = \"info\"\n\ndevices = \"cpu\"\n");
  std::string known;
  for (const setting& each : all_settings()) {
    if (each.section.empty()) known += std::string(each.name) + ", ";
  }
  EXPECT_EQ(problem(), "user.toml:3: unknown key \"devices\", accepted: " + known +
                           "[limits], [pool], [cache], [compiler_cache], [certificates], [worker], "
                           "[devices], [cpu], [identity.NAME], [transport.NAME]");
  write("user.toml", "\ndevice = \"gpu\"\n");
  EXPECT_EQ(problem(), "user.toml:2: device has a bad value, accepted: auto, vendor, cpu");
  write("user.toml", "[pool]\nper_key = 65\n");
  EXPECT_EQ(problem(), "user.toml:2: pool.per_key has a bad value, accepted: a number from 0 to 64");
  write("user.toml", "[pools]\nx = 1\n");
  EXPECT_EQ(problem(),
            "user.toml:1: unknown table [pools], accepted: [limits], [pool], [cache], [compiler_cache], "
            "[certificates], [worker], [devices], [cpu], [identity.NAME], [transport.NAME]");
  write("user.toml", "server = [\"nowhere\"]\n");
  EXPECT_EQ(problem(),
            "user.toml:1: server has a bad value: \"nowhere\" is no endpoint; did you mean tcp:nowhere? "
            "accepted: " +
                url_forms());
  write("user.toml", "log = \n");
  EXPECT_EQ(problem().substr(0, 12), "user.toml:1:");
}

TEST_F(config_test, takes_compute_capabilities_as_they_are_written) {
  for (const std::string good : {"5.0", "9.0", "12.0"}) {
    write("user.toml", "[cpu]\ncompute_capability = \"" + good + "\"\n");
    EXPECT_TRUE(load_config(sources).ok()) << good;
  }
  for (const std::string bad : {"", "9", "90", "9.", ".90", "9.0a", "4.9", "12.1", "99.99", "9,0"}) {
    write("user.toml", "[cpu]\ncompute_capability = \"" + bad + "\"\n");
    EXPECT_FALSE(load_config(sources).ok()) << bad;
  }
}

TEST_F(config_test, refuses_every_bad_value_without_crashing) {
  for (const std::string key : {"server",
                                "sync",
                                "rings",
                                "data_connections",
                                "compression",
                                "wait_seconds",
                                "module_cache",
                                "cache.directory",
                                "cache.size",
                                "compiler_cache.directory",
                                "compiler_cache.size",
                                "compiler_cache.per_identity",
                                "tls",
                                "certificates.server",
                                "certificates.known_servers",
                                "trace",
                                "find_addresses",
                                "concurrent_managed",
                                "token_file",
                                "log",
                                "log_format",
                                "device",
                                "listen",
                                "tokens_file",
                                "insecure",
                                "allow_users",
                                "limits.sessions",
                                "limits.running",
                                "pool.most",
                                "cpu.memory",
                                "cpu.cores",
                                "cpu.compute_capability",
                                "transport.x",
                                "transport.x.library",
                                "limits",
                                "transport"}) {
    for (const std::string value : {"-1", "1e9", "[1]", "[[]]", "{}", "1979-05-27", "{a = 1}"}) {
      write("user.toml", key + " = " + value + "\n");
      const auto c = load_config(sources);
      const bool empty_table = value == "{}" && (key == "limits" || key == "transport");
      EXPECT_EQ(c.ok(), empty_table) << key << " = " << value;
    }
  }
}

TEST_F(config_test, names_a_bad_variable) {
  environment["OUTBOARD_LOG"] = "loud";
  EXPECT_EQ(load_config(sources).error().message,
            "OUTBOARD_LOG is \"loud\", accepted: off, error, warn, info, debug");
  environment = {{"OUTBOARD_SERVER", "unix:/a,,unix:/b"}};
  EXPECT_FALSE(load_config(sources).ok());
  environment = {{"OUTBOARD_SYNC", "yes"}};
  EXPECT_FALSE(load_config(sources).ok());
}

TEST_F(config_test, wants_a_chosen_file_to_exist_and_be_readable) {
  sources.must_exist = folder + "/none.toml";
  EXPECT_EQ(load_config(sources).error().message,
            "cannot read " + folder + "/none.toml: No such file or directory");
  sources.must_exist = folder;
  EXPECT_FALSE(load_config(sources).ok());
}

TEST_F(config_test, takes_a_token_only_from_a_private_file) {
  const std::string good = write("token", "0123456789abcdef0123\n");
  const auto token = read_token(good);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->size(), 20u);
  EXPECT_FALSE(read_token(write("open", "0123456789abcdef0123\n", 0644)).ok());
  EXPECT_FALSE(read_token(write("written", "0123456789abcdef0123\n", 0620)).ok());
  const std::string group = write("group", "0123456789abcdef0123\n", 0440);
  EXPECT_EQ(read_token(group).ok(), ::geteuid() == 0) << "root may give it to a group";
  EXPECT_TRUE(read_token(group, folder).ok()) << "so may systemd";
  EXPECT_FALSE(read_token(write("short", "secret\n")).ok());
  EXPECT_FALSE(read_token(folder).ok());
  EXPECT_FALSE(read_token(folder + "/none").ok());
}

TEST(parse_size, knows_binary_units_and_overflow) {
  EXPECT_EQ(parse_size("4GiB"), 4ull << 30);
  EXPECT_EQ(parse_size("17"), 17u);
  EXPECT_EQ(parse_size("4GB"), std::nullopt);
  EXPECT_EQ(parse_size("99999999TiB"), std::nullopt);
  EXPECT_EQ(parse_size(""), std::nullopt);
}

}  // namespace
}  // namespace outboard
