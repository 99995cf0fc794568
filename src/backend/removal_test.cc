#include "backend/removal.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.hh"
#include "base/temporary_folder.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

struct removal_test : testing::Test {
  removal_test() {
    auto made = make_temporary_folder("removal-test");
    CHECK(made.ok());
    base = *made;
    fs::create_directory(base + "/it");
  }
  ~removal_test() override { fs::remove_all(base); }

  void removed() {
    const status done = remove_folder(base, "it");
    EXPECT_TRUE(done.ok()) << done.error().message;
    EXPECT_TRUE(fs::is_empty(base));
  }
  std::string base;
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

TEST_F(removal_test, says_what_it_cannot_remove) {
  EXPECT_FALSE(remove_folder(base, "other").ok());
  EXPECT_FALSE(remove_folder(base + "/other", "it").ok());
  std::ofstream(base + "/file") << "x";
  EXPECT_FALSE(remove_folder(base, "file").ok());
}

}  // namespace
}  // namespace outboard::backend
