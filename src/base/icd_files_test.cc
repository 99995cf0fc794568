#include "base/icd_files.hh"

#include <gtest/gtest.h>

#include <fstream>

#include "base/folder_testing.hh"

namespace outboard {
namespace {

using list = std::vector<std::pair<std::string, std::string>>;

struct icd_files_test : folder_test {
  icd_files_test() : folder_test("icd-files") {}
  void write(const std::string& name, const std::string& text) { std::ofstream(base + "/" + name) << text; }
};

TEST_F(icd_files_test, are_those_of_a_folder_without_ours) {
  write("b.icd", "libb.so\nmore\n");
  write("a.icd", "/opt/a/liba.so.1\n");
  write("ours.icd", "/usr/lib/outboard/libOutboardOpenCL.so.1\n");
  write("readme.txt", "libc.so.6\n");
  EXPECT_EQ(icd_files(base.c_str()), (list{{"a.icd", "/opt/a/liba.so.1"}, {"b.icd", "libb.so"}}));
  EXPECT_EQ(icd_files((base + "/b.icd").c_str()), (list{{"b.icd", "libb.so"}}));
}

TEST_F(icd_files_test, may_be_one_library) {
  EXPECT_EQ(icd_files("libpocl.so.2"), (list{{"chosen.icd", "libpocl.so.2"}}));
}

}  // namespace
}  // namespace outboard
