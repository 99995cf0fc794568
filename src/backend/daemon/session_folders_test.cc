#include "backend/daemon/session_folders.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "backend/confinement/confinement.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// As the daemon starts it, except for the exec.
result<child> fork_remover(const std::string& above) {
  std::array<int, 2> ends{};
  CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  child c;
  c.process = ::fork();
  if (c.process == 0) {
    ::dup2(ends[1], worker_control_descriptor);
    for (const int end : ends) {
      if (end != worker_control_descriptor) ::close(end);
    }
    ::_exit(run_folder_remover(
        above, [&] { return confine_a_helper({.kind = helper_kind::remover, .folder = above}, ::getenv); }));
  }
  ::close(ends[1]);
  c.control.reset(ends[0]);
  return c;
}

bool gone(const std::string& path) {
  for (int i = 0; i < 2000 && fs::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return !fs::exists(path);
}

TEST(session_folders, are_private_and_go_one_by_one_and_at_the_end) {
  std::string above;
  {
    session_folders folders(fork_remover);
    const auto first = folders.make(), second = folders.make();
    ASSERT_TRUE(first.ok() && second.ok());
    struct stat about {};
    ASSERT_EQ(::stat(first->c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
    EXPECT_NE(*first, *second);
    for (const std::string& folder : {*first, *second}) {
      fs::create_directory(folder + "/below");
      std::ofstream(folder + "/below/file") << "x";
    }
    folders.remove(*first);
    EXPECT_TRUE(gone(*first));
    EXPECT_TRUE(fs::exists(*second + "/below/file"));
    above = fs::path(*first).parent_path();
  }
  EXPECT_FALSE(fs::exists(above));
}

TEST(session_folders, cost_nothing_where_none_is_wanted_and_say_why_there_is_none) {
  bool started = false;
  {
    session_folders none(
        [&](const std::string&) -> result<child> { return started = true, failure("no process"); });
  }
  EXPECT_FALSE(started);
  std::string made;
  session_folders folders(
      [&](const std::string& above) -> result<child> { return made = above, failure("no process"); });
  const auto folder = folders.make();
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().message, "no process");
  EXPECT_FALSE(made.empty());
  EXPECT_FALSE(fs::exists(made));
}

/// A process that leads a group of its own and does nothing. With `report`, there is another one in its
/// group, whose number is written there.
pid_t start_group(int report) {
  const pid_t leader = ::fork();
  if (leader != 0) return ::setpgid(leader, leader), leader;
  ::setpgid(0, 0);
  if (report >= 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) ::pause();
    }
    CHECK(::write(report, &child, sizeof child) == sizeof child);
  }
  while (true) ::pause();
}

bool is_alive(pid_t process) {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(process), &about, WEXITED | WNOHANG | WNOWAIT) != 0
             ? ::kill(process, 0) == 0
             : about.si_pid == 0;
}

void end(pid_t process) {
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

TEST(session_folders, the_daemons_end_is_that_of_the_groups_of_workers_that_live) {
  // Then the leader's child becomes ours.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const unique_fd out(ends[0]), in(ends[1]);
  const pid_t leader = start_group(in.get());
  pid_t child = -1;
  ASSERT_EQ(::read(out.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  {
    session_folders folders(fork_remover);
    const auto folder = folders.make();
    ASSERT_TRUE(folder.ok());
    folders.give(*folder, leader);
    EXPECT_TRUE(is_alive(leader));
  }
  for (const pid_t each : {leader, child}) {
    int how = 0;
    EXPECT_EQ(::waitpid(each, &how, 0), each);
    EXPECT_TRUE(WIFSIGNALED(how));
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(session_folders, a_later_process_with_a_workers_number_is_left_alone) {
  std::optional<session_folders> folders(std::in_place, fork_remover);
  const auto folder = folders->make();
  ASSERT_TRUE(folder.ok());
  const pid_t worker = start_group(-1);
  folders->give(*folder, worker);
  // The remover has it by the time it has removed this.
  const auto other = folders->make();
  ASSERT_TRUE(other.ok());
  folders->remove(*other);
  EXPECT_TRUE(gone(*other));
  // The daemon waits for the worker, and its message about that is lost.
  end(worker);
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<std::uint64_t>(&worker);
  how.set_tid_size = 1;
  const auto innocent = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
  if (innocent == 0) {
    // It has nothing of the daemon's, above all not the remover's socket.
    ::close_range(3, ~0u, 0);
    ::setpgid(0, 0);
    while (true) ::pause();
  }
  if (innocent < 0) {
    GTEST_SKIP() << "no process may choose its number here: " << errno;
  }
  EXPECT_EQ(innocent, worker);
  ::setpgid(innocent, innocent);
  folders.reset();
  EXPECT_TRUE(is_alive(innocent));
  end(innocent);
}

}  // namespace
}  // namespace outboard::backend
