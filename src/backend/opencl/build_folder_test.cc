#include "backend/opencl/build_folder.hh"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <thread>

#include "base/asleep_testing.hh"
#include "base/temporary_folder.hh"

namespace outboard::backend::opencl {
namespace {

namespace fs = std::filesystem;

/// Has its own TMPDIR, so that what is left behind is noticed, and remembers the process's folder.
class build_folder_test : public testing::Test {
 protected:
  build_folder_test() : before_(fs::current_path()) {
    if (const char* was = ::getenv("TMPDIR")) was_ = was;
    room_ = make_temporary_folder("build-folder-test").value();
    ::setenv("TMPDIR", room_.c_str(), 1);
  }
  ~build_folder_test() override {
    was_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", was_.c_str(), 1);
    fs::current_path(before_);
    fs::remove_all(room_);
  }
  bool nothing_left() const { return fs::is_empty(room_); }

  fs::path before_;
  std::string room_;

 private:
  std::string was_;
};

file_contents contents(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : "missing";
}

TEST_F(build_folder_test, files_lie_where_the_client_has_them) {
  build_folder folder;
  {
    auto inside = folder.enter(
        {"/home/u", "outboard_1", {"/empty"}, {{"/home/u/x.h", contents("x")}, {"/y.h", contents("y")}}});
    ASSERT_TRUE(inside.ok());
    EXPECT_EQ(text_of("x.h"), "x");
    EXPECT_EQ(text_of("../../y.h"), "y");
    EXPECT_EQ(text_of("./../../../outboard_1/../outboard_files/y.h"), "y");
    EXPECT_TRUE(fs::is_directory("../../empty"));
    const std::string root = fs::current_path().parent_path().parent_path().parent_path();
    EXPECT_TRUE(root.starts_with(room_)) << root;
    EXPECT_EQ(fs::status(root).permissions(), fs::perms::owner_all);
    EXPECT_EQ(inside->without_folder("in " + root + "/a and " + root + "/b"), "in a and b");
  }
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ(fs::current_path(), before_);
}

TEST_F(build_folder_test, builds_that_agree_share_it) {
  build_folder folder;
  auto first = folder.enter({"/h", "outboard_1", {}, {{"/h/x.h", contents("x")}}});
  ASSERT_TRUE(first.ok());
  {
    auto second =
        folder.enter({"/h", "outboard_2", {}, {{"/h/x.h", contents("x")}, {"/h/z.h", contents("z")}}});
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(text_of("x.h") + text_of("z.h"), "xz");
  }
  EXPECT_EQ(text_of("x.h"), "x") << "the first build goes on";
}

/// Checks that `wanted` enters only after the build that is inside has left.
void expect_waits(build_folder& folder, const files_of_build& wanted, const std::string& file,
                  const std::string& text) {
  std::atomic<bool> left{false};
  seen_thread waiting;
  auto first = std::make_unique<result<build_folder::stay>>(
      folder.enter({"/h", "outboard_1", {}, {{"/h/x.h", contents("x")}}}));
  ASSERT_TRUE(first->ok());
  std::thread other([&] {
    waiting.here();
    auto second = folder.enter(wanted);
    EXPECT_TRUE(left.load());
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(text_of(file), text);
  });
  EXPECT_TRUE(waiting.falls_asleep());
  EXPECT_EQ(text_of("x.h"), "x");
  left.store(true);
  first.reset();
  other.join();
}

TEST_F(build_folder_test, one_whose_header_has_changed_waits) {
  build_folder folder;
  expect_waits(folder, {"/h", "outboard_2", {}, {{"/h/x.h", contents("other")}}}, "x.h", "other");
  EXPECT_TRUE(nothing_left());
}

TEST_F(build_folder_test, one_from_another_folder_waits) {
  build_folder folder;
  expect_waits(folder, {"/i", "outboard_2", {}, {{"/h/x.h", contents("x")}}}, "../h/x.h", "x");
  EXPECT_TRUE(nothing_left());
}

TEST_F(build_folder_test, what_cannot_be_written_is_an_error_and_leaves_nothing) {
  build_folder folder;
  const auto inside =
      folder.enter({"/h", "outboard_1", {}, {{"/h/x", contents("x")}, {"/h/x/y", contents("y")}}});
  EXPECT_FALSE(inside.ok()) << "a file cannot be a folder";
  EXPECT_TRUE(nothing_left());
  std::string deep;
  while (deep.size() < 4090) deep += "/" + std::string(200, 'd');
  EXPECT_FALSE(folder.enter({"/h", "outboard_1", {}, {{deep + "/x", contents("x")}}}).ok());
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(folder.enter({"/h", "outboard_1", {}, {{"/h/x", contents("x")}}}).ok()) << "and others go on";
}

}  // namespace
}  // namespace outboard::backend::opencl
