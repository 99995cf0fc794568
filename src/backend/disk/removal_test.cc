#include "backend/disk/removal.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fd.hh"
#include "base/folder_testing.hh"
#include "base/temporary_folder.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

struct removal_test : folder_test {
  removal_test() : folder_test("removal-test") { fs::create_directory(base + "/it"); }

  void removed() {
    const status done = remove_folder(base, "it");
    EXPECT_TRUE(done.ok()) << done.error().message;
    EXPECT_TRUE(fs::is_empty(base));
  }
};

TEST_F(removal_test, takes_files_folders_and_modes_that_forbid_it) {
  fs::create_directories(base + "/it/a/b/c");
  fs::create_directories(base + "/it/empty");
  for (const char* name : {"/it/x", "/it/a/x", "/it/a/b/c/x"}) std::ofstream(base + name) << "x";
  ::chmod((base + "/it/a/b/c").c_str(), 0);
  ::chmod((base + "/it/a/b").c_str(), 0300);
  ::chmod((base + "/it/empty").c_str(), 0);
  ::chmod((base + "/it").c_str(), 0500);
  removed();
}

TEST_F(removal_test, takes_links_and_leaves_what_they_lead_to) {
  auto other = make_temporary_folder("removal-test");
  ASSERT_TRUE(other.ok());
  std::ofstream(*other + "/file") << "x";
  fs::create_directory_symlink(*other, base + "/it/folder");
  fs::create_symlink(*other + "/file", base + "/it/file");
  fs::create_symlink("/nowhere", base + "/it/nowhere");
  removed();
  EXPECT_TRUE(fs::exists(*other + "/file"));
  fs::remove_all(*other);
}

TEST_F(removal_test, takes_what_is_deeper_than_any_path) {
  unique_fd at(::open((base + "/it").c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 700; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "deeper", 0700), 0);
    ::close(::openat(at.get(), "file", O_CREAT | O_WRONLY, 0));
    at.reset(::openat(at.get(), "deeper", O_RDONLY | O_DIRECTORY));
  }
  at.reset();
  removed();
}

TEST_F(removal_test, takes_many) {
  for (int i = 0; i < 500; ++i) std::ofstream(base + "/it/" + std::to_string(i)) << "x";
  removed();
}

/// Somebody changes the folder for a link to another one and back all the time, and takes it its mode. It
/// cannot be moved, so this goes on.
TEST_F(removal_test, changes_no_other_folder_where_a_link_takes_the_place_of_one) {
  for (const char* folder : {"/other/file", "/it/folder/file", "/up/file"})
    fs::create_directories(base + folder);
  const std::string other = base + "/other";
  ::chmod(other.c_str(), 0500);
  const unique_fd it(::open((base + "/it").c_str(), O_RDONLY | O_DIRECTORY)),
      folder(::open((base + "/it/folder").c_str(), O_RDONLY | O_DIRECTORY)),
      above(::open(base.c_str(), O_RDONLY | O_DIRECTORY));
  std::atomic<bool> stop = false;
  std::thread exchanges([&] {
    const auto rename = [&](const char* from, const char* to, unsigned how) {
      return ::syscall(SYS_renameat2, it.get(), from, it.get(), to, how) == 0;
    };
    while (!stop) {
      ::fchmod(folder.get(), 0500);
      (void)!::symlinkat(other.c_str(), it.get(), "link");
      constexpr unsigned only_to_a_free_name = 1, exchange = 2;
      if (!rename("folder", "link", exchange)) rename("link", "folder", only_to_a_free_name);
    }
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < until && fs::status(other).permissions() == fs::perms(0500))
    (void)take_out(it.get(), "folder", above.get(), "up").ok();
  stop = true;
  exchanges.join();
  EXPECT_EQ(fs::status(other).permissions(), fs::perms(0500));
  EXPECT_TRUE(fs::exists(other + "/file"));
  ::chmod(other.c_str(), 0700);
  ::fchmod(folder.get(), 0700);
}

TEST_F(removal_test, says_what_it_cannot_remove) {
  EXPECT_FALSE(remove_folder(base, "other").ok());
  EXPECT_FALSE(remove_folder(base + "/other", "it").ok());
  std::ofstream(base + "/file") << "x";
  EXPECT_FALSE(remove_folder(base, "file").ok());
}

}  // namespace
}  // namespace outboard::backend
