#include "backend/confinement/allowed_calls.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "backend/confinement/confinement_testing.hh"
#include "base/sanitizers.hh"
#include "base/testing/places.hh"

namespace outboard::backend {
namespace {

/// By these the kernel's own probes come back; no filter sees them (Linux 6.14), and whoever else calls them
/// is ended.
bool is_of_probes(int number) {
#if defined(__x86_64__)
  return number == 335 || number == 336;
#else
  return false;
#endif
}

/// No kernel has had a number as large as this yet.
constexpr int beyond = 500;

bool has(filtered who, int number) {
  const auto all = allowed_calls(who);
  return std::ranges::find(all, number, &allowed_call::number) != all.end();
}

struct allowed_calls_test : confinement_test, testing::WithParamInterface<filtered> {
  using confinement_test::tried;
  codes tried(const std::function<void(attempts&)>& attempt) {
    return tried(attempt, [](const std::string&) -> status {
      if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failure("no_new_privs");
      return refuse_system_calls(GetParam());
    });
  }
};

TEST_P(allowed_calls_test, are_all_that_is_done) {
  const auto done = tried([](attempts& a) {
    for (int number = 0; number < beyond; ++number) {
      if (has(GetParam(), number) || is_of_probes(number)) continue;
      const long answer = ::syscall(number, 0L, 0L, 0L, 0L, 0L, 0L);
      if (answer != -1 || (errno != EPERM && errno != ENOSYS))
        a.add("call_" + std::to_string(number), answer);
    }
  });
  EXPECT_EQ(done, codes{});
}

TEST_P(allowed_calls_test, are_not_there_where_a_library_could_do_without) {
  const auto found = tried([](attempts& a) {
    a.add("threads_by_a_structure", ::syscall(SYS_clone3, nullptr, 0));
    a.add("files_by_a_structure", ::syscall(437, -1, nullptr, nullptr, 0));
    a.add("of_the_future", ::syscall(beyond - 1));
    if (!has(GetParam(), SYS_memfd_create)) a.add("memory_by_a_descriptor", ::memfd_create("x", 0));
    a.add("another_timer", ::syscall(SYS_timer_create, 0, nullptr, nullptr));
    a.add("a_mount", ::syscall(SYS_mount, "none", "/", "tmpfs", 0L, nullptr));
    int in_thread = 0;
    std::thread([&] { in_thread = 1; }).join();
    a.add("a_thread", in_thread - 1);
  });
  codes expected{{"threads_by_a_structure", ENOSYS},
                 {"files_by_a_structure", ENOSYS},
                 {"of_the_future", ENOSYS},
                 {"another_timer", ENOSYS},
                 {"a_mount", EPERM},
                 {"a_thread", 0}};
  if (!has(GetParam(), SYS_memfd_create)) expected["memory_by_a_descriptor"] = ENOSYS;
  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(of, allowed_calls_test,
                         testing::Values(filtered::helper, filtered::remover, filtered::tidier,
                                         filtered::cpu_worker),
                         [](const auto& about) {
                           switch (about.param) {
                             case filtered::remover:
                               return "the_remover";
                             case filtered::tidier:
                               return "the_tidier";
                             case filtered::cpu_worker:
                               return "workers_of_the_cpu_device";
                             default:
                               return "the_gate";
                           }
                         });

TEST(allowed_calls, are_in_the_document) {
  if (under_asan || under_tsan) GTEST_SKIP() << "sanitizers have some of their own";
  std::ifstream file(in_checkout("docs/threat-model.md"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("## System calls of our own code");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = all.substr(begin, all.find("\n## ", begin) - begin);
  std::set<std::string_view> names;
  for (const filtered who : {filtered::helper, filtered::remover, filtered::tidier, filtered::cpu_worker})
    for (const allowed_call& each : allowed_calls(who)) names.insert(each.name);
  for (const std::string_view name : names)
    EXPECT_NE(section.find("`" + std::string(name) + "`"), std::string::npos) << name;
}

TEST(allowed_calls, are_not_listed_for_code_of_others) {
  for (const filtered who :
       {filtered::worker, filtered::driver, filtered::driver_with_mps, filtered::nvml, filtered::checkpoint})
    EXPECT_TRUE(allowed_calls(who).empty());
}

}  // namespace
}  // namespace outboard::backend
