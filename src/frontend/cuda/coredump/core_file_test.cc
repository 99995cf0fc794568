#include "frontend/cuda/coredump/core_file.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/temporary_folder.hh"

namespace outboard::frontend::cuda {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class core_files : public testing::Test {
 protected:
  void SetUp() override {
    const auto made = make_temporary_folder("core_file_test");
    ASSERT_TRUE(made.ok());
    folder_ = *made;
    path_ = folder_ + "/core";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  std::string folder_, path_;
};

TEST_F(core_files, pieces_are_one_file_and_the_next_dump_replaces_it) {
  core_file file;
  EXPECT_FALSE(file.begun());
  file.begin(path_);
  EXPECT_TRUE(file.begun());
  file.add("the first ");
  file.add("dump");
  EXPECT_TRUE(file.end());
  EXPECT_FALSE(file.begun());
  EXPECT_EQ(text_of(path_), "the first dump");
  file.begin(path_);
  file.add("second");
  EXPECT_TRUE(file.end());
  EXPECT_EQ(text_of(path_), "second");
}

TEST_F(core_files, a_place_where_none_can_be_made_loses_the_dump_and_nothing_else) {
  core_file file;
  file.begin(folder_ + "/no/such/folder/core");
  EXPECT_TRUE(file.begun());
  file.add("bytes");
  EXPECT_FALSE(file.end());
  file.begin(path_);
  file.add("later");
  EXPECT_TRUE(file.end());
  EXPECT_EQ(text_of(path_), "later");
}

TEST_F(core_files, a_link_is_not_followed_and_others_cannot_read_the_dump) {
  const std::string other = folder_ + "/other";
  std::ofstream(other) << "kept";
  ASSERT_EQ(::symlink(other.c_str(), path_.c_str()), 0);
  core_file file;
  file.begin(path_);
  file.add("dump");
  EXPECT_FALSE(file.end());
  EXPECT_EQ(text_of(other), "kept");
  ::unlink(path_.c_str());
  ::unlink(other.c_str());
  file.begin(path_);
  EXPECT_TRUE(file.end());
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(core_files, a_dump_without_end_is_given_up) {
  core_file file(8);
  file.begin(path_);
  file.add("12345");
  file.add("6789");
  EXPECT_FALSE(file.end());
  EXPECT_EQ(text_of(path_), "12345");
  file.begin(path_);
  file.add("12345678");
  EXPECT_TRUE(file.end()) << "the next one counts anew";
}

TEST_F(core_files, a_full_disk_is_told_of) {
  core_file file;
  file.begin("/dev/full");
  file.add("bytes");
  EXPECT_FALSE(file.end());
}

TEST(core_names, the_standard_one_is_a_drivers) {
  EXPECT_EQ(standard_core_name({"vm", 475, 1795341852}), "core_1795341852_vm_475.nvcudmp");
}

}  // namespace
}  // namespace outboard::frontend::cuda
