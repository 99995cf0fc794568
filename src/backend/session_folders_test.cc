#include "backend/session_folders.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// As the daemon starts it, but for the exec.
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
    ::_exit(run_folder_remover(above));
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

}  // namespace
}  // namespace outboard::backend
