#include "base/configuration/identity_settings.hh"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/configuration/config_file.hh"
#include "base/configuration/settings.hh"

namespace outboard {
namespace {

/// What is wrong with a file of this text; empty: nothing.
std::string problem_of(const std::string& text, config& c) {
  status done = apply_config_text(c, text, "f");
  if (done.ok()) done = check_identities(c.identities);
  return done.ok() ? "" : done.error().message;
}
std::string problem_of(const std::string& text) {
  config c;
  return problem_of(text, c);
}

TEST(identity_settings, reads_who_may_do_what_and_have_how_much) {
  config c;
  ASSERT_EQ(
      problem_of("[identity.lab-a]\nusers = [\"alice\", \"1002\"]\ngroups = \"lab\"\ntokens = [\"ci\"]\n"
                 "certificates = [\"CN=alice,O=lab\"]\nsessions = 2\nwaiting = 0\ndevice_memory = "
                 "\"8GiB\"\nhost_memory = \"4GiB\"\ncpu_weight = 300\ndevices = [\"1\"]\n"
                 "rights = [\"run\", \"list-all\"]\n[identity.default]\nrights = []\n",
                 c),
      "");
  ASSERT_EQ(c.identities.size(), 2u);
  const auto at = std::ranges::find(c.identities, "lab-a", &identity_settings::name);
  ASSERT_NE(at, c.identities.end());
  EXPECT_EQ(at->users, (std::vector<std::string>{"alice", "1002"}));
  EXPECT_EQ(at->groups, (std::vector<std::string>{"lab"}));
  EXPECT_EQ(at->tokens, (std::vector<std::string>{"ci"}));
  EXPECT_EQ(at->certificates, (std::vector<std::string>{"CN=alice,O=lab"}));
  EXPECT_EQ(at->sessions, 2u);
  EXPECT_EQ(at->waiting, 0u);
  EXPECT_EQ(at->device_memory, 8ull << 30);
  EXPECT_EQ(at->host_memory, 4ull << 30);
  EXPECT_EQ(at->cpu_weight, 300u);
  EXPECT_EQ(at->devices, (std::vector<std::string>{"1"}));
  EXPECT_EQ(rights_text(at->may.value()), "run, list-all");
  EXPECT_EQ(c.origins.at("identity.lab-a.sessions"), "f:6");
  EXPECT_EQ(std::ranges::find(c.identities, "default", &identity_settings::name)->may, rights{0});
}

TEST(identity_settings, names_line_and_known_keys_of_what_it_does_not_know) {
  std::string known;
  for (const identity_key& each : identity_keys()) known.append(known.empty() ? "" : ", ").append(each.name);
  EXPECT_EQ(problem_of("[identity.a]\nusers = [\"x\"]\nsesions = 2\n"),
            "f:3: unknown key \"identity.a.sesions\", accepted: " + known);
  EXPECT_EQ(problem_of("[identity]\nsessions = 2\n"),
            "f:2: unknown key \"identity.sessions\", accepted: [identity.NAME]");
  EXPECT_EQ(problem_of("\n[identity.\"a b\"]\n").substr(0, 42),
            "f:2: unknown name of an identity \"a b\", ac");
  EXPECT_EQ(problem_of("[identity.a]\nsessions = 0\n"),
            "f:2: identity.a.sessions has a bad value, accepted: a number from 1 to 100000");
}

TEST(identity_settings, refuses_values_that_mean_nothing) {
  for (const std::string line : {"users = []",
                                 "users = [\"\"]",
                                 "users = [\"a\", \"a\"]",
                                 "users = 7",
                                 "tokens = true",
                                 "sessions = -1",
                                 "sessions = \"2\"",
                                 "waiting = 100001",
                                 "waiting = 1.5",
                                 "devices = []",
                                 "rights = [\"root\"]",
                                 "rights = \"run,list-own\"",
                                 "rights = 1",
                                 "device_memory = \"1KiB\"",
                                 "device_memory = -1",
                                 "host_memory = 1",
                                 "cpu_weight = 0",
                                 "cpu_weight = 10001",
                                 "device_memory = \"8GB\"",
                                 "sessions = {}",
                                 "users = [[]]",
                                 "rights = [1]"}) {
    EXPECT_NE(problem_of("[identity.a]\n" + line + "\n").find(" has a bad value, accepted: "),
              std::string::npos)
        << line;
  }
}

TEST(identity_settings, puts_nobody_into_two_tables) {
  for (const std::string who : {"users", "groups", "tokens", "certificates"}) {
    const std::string found =
        problem_of("[identity.a]\n" + who + " = [\"x\", \"y\"]\n[identity.b]\n" + who + " = [\"y\"]\n");
    EXPECT_EQ(found, "f:3: " + who.substr(0, who.size() - 1) +
                         " \"y\" is in [identity.b] and in [identity.a] (f:1); nobody belongs to two");
  }
  EXPECT_EQ(problem_of("[identity.a]\nusers = [\"x\"]\n[identity.b]\ntokens = [\"x\"]\n"), "");
}

TEST(identity_settings, wants_somebody_in_each_table_and_nobody_in_the_default) {
  EXPECT_EQ(problem_of("[identity.a]\nsessions = 1\n"),
            "f:1: [identity.a] names nobody: give it users, groups, tokens or certificates");
  EXPECT_EQ(problem_of("[identity.default]\nusers = [\"x\"]\n").substr(0, 48),
            "f:1: [identity.default] is for everybody whom no");
}

TEST(identity_settings, takes_later_files_over_earlier_ones_key_by_key) {
  config c;
  ASSERT_EQ(problem_of("[identity.a]\nusers = [\"x\"]\nsessions = 1\n", c), "");
  ASSERT_EQ(problem_of("[identity.a]\nsessions = 2\n", c), "");
  ASSERT_EQ(c.identities.size(), 1u);
  EXPECT_EQ(c.identities[0].users, (std::vector<std::string>{"x"}));
  EXPECT_EQ(c.identities[0].sessions, 2u);
}

}  // namespace
}  // namespace outboard
