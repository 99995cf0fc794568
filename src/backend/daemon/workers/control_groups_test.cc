#include "backend/daemon/workers/control_groups.hh"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

TEST(control_groups, finds_the_group_of_version_2_among_those_of_version_1) {
  EXPECT_EQ(own_group_in("12:pids:/a\n1:name=systemd:/b\n0::/system.slice/outboard.service\n"),
            "/system.slice/outboard.service");
  EXPECT_EQ(own_group_in("0::/"), "/");
  EXPECT_EQ(own_group_in("12:pids:/a\n"), std::nullopt);
  EXPECT_EQ(own_group_in(""), std::nullopt);
}

TEST(control_groups, finds_the_folder_where_a_group_is_mounted) {
  const std::string whole =
      "22 1 0:20 / /proc rw - proc proc rw\n"
      "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(group_folder_in(whole, "/"), "/sys/fs/cgroup");
  EXPECT_EQ(group_folder_in(whole, "/a.slice/b"), "/sys/fs/cgroup/a.slice/b");
  const std::string part = "31 22 0:27 /a.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(group_folder_in(part, "/a.slice"), "/sys/fs/cgroup");
  EXPECT_EQ(group_folder_in(part, "/a.slice/b"), "/sys/fs/cgroup/b");
  EXPECT_EQ(group_folder_in(part, "/a.slicer"), std::nullopt);
  EXPECT_EQ(group_folder_in(part, "/b"), std::nullopt);
  EXPECT_EQ(group_folder_in("31 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "/"), std::nullopt);
  EXPECT_EQ(group_folder_in("31 22\n\n - cgroup2 \n", "/"), std::nullopt);
}

TEST(control_groups, reads_counts_and_words) {
  const std::string events = "low 0\nmax 71\noom 2\noom_kill 3\noom_group_kill 1\n";
  EXPECT_EQ(number_in_lines(events, "oom_kill"), 3u);
  EXPECT_EQ(number_in_lines(events, "oom_kil"), 0u);
  EXPECT_EQ(number_in_lines("oom_kill many\n", "oom_kill"), 0u);
  EXPECT_TRUE(has_word("cpuset cpu io memory pids\n", "cpu"));
  EXPECT_FALSE(has_word("cpuset io\n", "cpu"));
  EXPECT_FALSE(has_word("", "cpu"));
}

/// A folder with files that a group has, which keep the last value that was written.
struct pretended_group : folder_test {
  pretended_group() : folder_test("control-groups"), loop(event_loop::make().value()) {
    for (const char* file : {"memory.max", "memory.swap.max", "cpu.weight", "cgroup.procs"}) put(file, "");
  }
  void put(const std::string& file, const std::string& text) const {
    std::ofstream(base + "/" + file) << text;
  }
  std::string text_of(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(base + "/" + file).rdbuf();
    return text.str();
  }
  event_loop loop;
};

TEST_F(pretended_group, gets_the_limits_of_an_identity_and_what_a_worker_needs_itself) {
  const control_groups groups(loop, own_group{base, "/pretended", true});
  ASSERT_TRUE(groups.limit(base, {.host_memory = 1ull << 30, .cpu_weight = 300}).ok());
  EXPECT_EQ(text_of("memory.max"), std::to_string((1ull << 30) + worker_allowance));
  EXPECT_EQ(text_of("memory.swap.max"), "0");
  EXPECT_EQ(text_of("cpu.weight"), "300");
  ASSERT_TRUE(control_groups::enter(base, 4242).ok());
  EXPECT_EQ(text_of("cgroup.procs"), "4242");
}

TEST_F(pretended_group, has_no_limit_where_its_identity_has_none) {
  const control_groups groups(loop, own_group{base, "/pretended", true});
  ASSERT_TRUE(groups.limit(base, {}).ok());
  EXPECT_EQ(text_of("memory.max"), "max");
  EXPECT_EQ(text_of("cpu.weight"), "100");
}

TEST_F(pretended_group, tells_what_it_holds_and_why_it_was_ended) {
  EXPECT_FALSE(control_groups::usage(base).has_value());
  put("memory.current", "1048576\n");
  put("memory.max", "2097152\n");
  EXPECT_EQ(control_groups::usage(base)->memory, 1048576u);
  EXPECT_EQ(control_groups::usage(base)->most, 2097152u);
  put("memory.events", "oom 4\noom_kill 0\n");
  EXPECT_EQ(control_groups::end_of(base), "");
  put("memory.events", "oom 4\noom_kill 1\n");
  EXPECT_EQ(control_groups::end_of(base),
            "it took more of the server's own memory than the 2 MiB that a session of its identity may have "
            "(host_memory, and 512 MiB for its worker): the kernel has ended its worker");
  put("memory.events", "oom 0\noom_kill 1\n");
  EXPECT_EQ(
      control_groups::end_of(base),
      "the server had no memory left for all its sessions together, and the kernel has ended this one's "
      "worker");
}

TEST_F(pretended_group, is_none_where_the_daemon_has_no_group_to_divide) {
  control_groups groups(loop, std::nullopt);
  EXPECT_FALSE(groups.on());
  EXPECT_EQ(groups.make(1).value(), "");
}

TEST_F(pretended_group, that_cannot_be_made_is_an_error_with_its_place) {
  control_groups groups(loop, own_group{base + "/gone", "/pretended", false});
  const auto made = groups.make(7);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find(base + "/gone/worker-7"), std::string::npos);
}

}  // namespace
}  // namespace outboard::backend
