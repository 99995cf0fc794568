#include "backend/confinement/guard.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace outboard::backend {
namespace {

/// Runs `check` in a process of its own; returns its exit status.
template <class Check>
int in_a_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(guard, leaves_no_core_files_and_is_not_dumpable) {
  EXPECT_EQ(in_a_child([] {
              guard_this_process();
              rlimit core{1, 1};
              ::getrlimit(RLIMIT_CORE, &core);
              return core.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1;
            }),
            0);
}

TEST(guard, leaves_a_process_to_its_user_where_a_driver_must_look_into_it) {
  EXPECT_EQ(in_a_child([] {
              guard_this_process(0, looked_into_by::user);
              rlimit core{1, 1};
              ::getrlimit(RLIMIT_CORE, &core);
              return core.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 1 ? 0 : 1;
            }),
            0);
}

TEST(guard, lets_the_process_read_its_own_files) {
  EXPECT_EQ(in_a_child([] {
              guard_this_process();
              const int maps = ::open("/proc/self/maps", O_RDONLY), exe = ::open("/proc/self/exe", O_RDONLY);
              return maps >= 0 && exe >= 0 ? 0 : 1;
            }),
            0);
}

TEST(guard, offers_workers_to_the_kernel_first) {
  EXPECT_EQ(in_a_child([] {
              guard_this_process(end_workers_first);
              int score = 0;
              std::ifstream("/proc/self/oom_score_adj") >> score;
              return score == end_workers_first ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace outboard::backend
