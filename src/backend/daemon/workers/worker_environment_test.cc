#include "backend/daemon/workers/worker_environment.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace outboard::backend {
namespace {

const std::vector<std::string> uuids{"GPU-aaaa0000", "GPU-aabb1111", "GPU-cccc2222"};

std::string compose(std::optional<std::string_view> server, std::optional<std::string_view> client) {
  return compose_visible_devices(server, client, uuids).value_or("not set");
}

TEST(visible_devices, are_the_clients_where_the_server_restricts_nothing) {
  EXPECT_EQ(compose({}, {}), "not set");
  EXPECT_EQ(compose({}, "1,0"), "1,0");
  EXPECT_EQ(compose({}, ""), "");
}

TEST(visible_devices, are_chosen_within_what_the_server_restricts) {
  EXPECT_EQ(compose("4,5,6", {}), "GPU-aaaa0000,GPU-aabb1111,GPU-cccc2222");
  EXPECT_EQ(compose("4,5,6", "2,0"), "GPU-cccc2222,GPU-aaaa0000");
  EXPECT_EQ(compose("4,5,6", "1,4,0"), "GPU-aabb1111") << "an index beyond ends the list";
  EXPECT_EQ(compose("4,5,6", "GPU-c,GPU-aaaa"), "GPU-cccc2222,GPU-aaaa0000");
  EXPECT_EQ(compose("4,5,6", "GPU-c,0"), "GPU-cccc2222") << "a list of UUIDs has no indices";
  EXPECT_EQ(compose("4,5,6", "1,1"), "GPU-aabb1111,GPU-aabb1111") << "which the driver refuses";
  EXPECT_EQ(compose("4,5,6", "GPU-a"), "-1") << "ambiguous";
  EXPECT_EQ(compose("4,5,6", "GPU-dddd"), "-1") << "a device that the operator kept back";
  EXPECT_EQ(compose("4,5,6", ""), "-1");
  EXPECT_EQ(compose("4,5,6", "99999999999999999999"), "-1");
}

TEST(driver_environment, takes_only_what_the_driver_reads) {
  const variables sent{{"CUDA_LAUNCH_BLOCKING", "1"}, {"LD_PRELOAD", "/tmp/evil.so"},
                       {"CUDA_CACHE_PATH", "/etc"},   {"CUDA_DEVICE_ORDER", std::string("a\0b", 3)},
                       {"CUDA_AUTO_BOOST", "0"},      {"CUDA_LAUNCH_BLOCKING", "0"}};
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(driver_environment(sent, nothing, uuids),
            (variables{{"CUDA_AUTO_BOOST", "0"}, {"CUDA_LAUNCH_BLOCKING", "0"}}));
}

TEST(worker_environment, of_a_confined_worker_keeps_everything_in_its_folder) {
  const auto own = [](const char* name) -> const char* {
    const std::string_view wanted(name);
    if (wanted == "PATH") return "/bin";
    for (const char* set : {"HOME", "TMPDIR", "POCL_CACHE_DIR", "XDG_RUNTIME_DIR"}) {
      if (wanted == set) return "/root";
    }
    return nullptr;
  };
  EXPECT_THAT(worker_environment({{"CUDA_LAUNCH_BLOCKING", "1"}}, within_folder(own, "/f", "/c")),
              testing::UnorderedElementsAre("PATH=/bin", "HOME=/f", "TMPDIR=/f", "XDG_CACHE_HOME=/f",
                                            "POCL_CACHE_DIR=/c/pocl", "CUDA_CACHE_PATH=/c/compute",
                                            "CUDA_LAUNCH_BLOCKING=1"));
}

TEST(worker_environment, lets_nvidias_compiler_keep_no_more_than_there_is_room_for) {
  const auto size = [](const char* asked) {
    variables driver{{"CUDA_AUTO_BOOST", "0"}};
    if (asked) driver.emplace_back("CUDA_CACHE_MAXSIZE", asked);
    driver = within_cache_size(driver, 1000);
    EXPECT_EQ(driver.size(), 2u);
    return driver.back().second;
  };
  EXPECT_EQ(size(nullptr), "1000");
  EXPECT_EQ(size("0"), "0");
  EXPECT_EQ(size("999"), "999");
  for (const char* more : {"1001", "", "-1", "12x", "99999999999999999999999"}) EXPECT_EQ(size(more), "1000");
  EXPECT_EQ(within_cache_size({}, 1ull << 40).front().second, "4294967295");
}

TEST(driver_environment, tells_of_a_device_that_is_named_twice) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const auto restricted = [](const char*) { return "4,5,6"; };
  const auto twice = [&](const char* list, const variable_source& own) {
    return visible_devices_of(driver_environment({{"CUDA_VISIBLE_DEVICES", list}}, own, uuids), uuids)->twice;
  };
  for (const variable_source& own : {variable_source(nothing), variable_source(restricted)}) {
    EXPECT_TRUE(twice("0,0", own));
    EXPECT_TRUE(twice("2,1,2", own));
    EXPECT_TRUE(twice("GPU-c,GPU-cccc", own));
    EXPECT_FALSE(twice("0,1,2", own));
    EXPECT_FALSE(twice("0,7,0", own)) << "an index beyond ends the list";
    EXPECT_FALSE(twice("", own));
  }
  EXPECT_FALSE(visible_devices_of({{"CUDA_DEVICE_ORDER", "0,0"}}, uuids));
}

TEST(driver_environment, tells_of_a_list_that_names_no_device) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const auto restricted = [](const char*) { return "4,5,6"; };
  for (const variable_source& own : {variable_source(nothing), variable_source(restricted)}) {
    const auto named = [&](const char* list) {
      const auto driver = driver_environment({{"CUDA_VISIBLE_DEVICES", list}}, own, uuids);
      return visible_devices_of(driver, uuids)->ordinals.size();
    };
    for (const char* none : {"", "-1", "7", "7,0", "GPU-7", "none"}) EXPECT_EQ(named(none), 0u) << none;
    EXPECT_EQ(named("0"), 1u);
    EXPECT_EQ(named("2,0,7"), 2u);
  }
  EXPECT_FALSE(visible_devices_of(driver_environment({}, nothing, uuids), uuids)) << "all devices are seen";
  EXPECT_EQ(visible_devices_of(driver_environment({}, restricted, uuids), uuids)->ordinals.size(), 3u);
}

TEST(worker_environment, is_clean) {
  const std::map<std::string, const char*> own{
      {"PATH", "/bin"}, {"AWS_SECRET_ACCESS_KEY", "x"}, {"CUDA_LAUNCH_BLOCKING", "1"}};
  const auto source = [&](const char* name) -> const char* {
    const auto at = own.find(name);
    return at == own.end() ? nullptr : at->second;
  };
  EXPECT_THAT(worker_environment({{"CUDA_AUTO_BOOST", "0"}}, source),
              testing::ElementsAre("PATH=/bin", "CUDA_AUTO_BOOST=0"));
}

TEST(within_devices, leaves_a_client_those_devices_alone_whatever_it_asks_for) {
  const std::vector<std::string> all{"GPU-0a", "GPU-1b", "GPU-2c"}, some{"GPU-2c", "GPU-0a"};
  const auto visible = [&](const variables& asked) {
    const variable_source own =
        within_devices([](const char*) -> const char* { return "GPU-0a,GPU-1b,GPU-2c"; }, some);
    EXPECT_STREQ(own("HOME"), "GPU-0a,GPU-1b,GPU-2c") << "the rest stays";
    const variables driver = driver_environment(asked, own, some);
    return driver.empty() ? std::string("none") : driver.front().second;
  };
  EXPECT_EQ(visible({}), "GPU-2c,GPU-0a");
  EXPECT_EQ(visible({{"CUDA_VISIBLE_DEVICES", "0"}}), "GPU-2c") << "by its own order";
  for (const char* others : {"2", "GPU-1b", "GPU-1", "-1", "", "2x", "all"})
    EXPECT_EQ(visible({{"CUDA_VISIBLE_DEVICES", others}}), "-1") << others;
}

}  // namespace
}  // namespace outboard::backend
