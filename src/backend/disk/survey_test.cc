#include "backend/disk/survey.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.hh"
#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

struct survey_test : folder_test {
  survey_test() : folder_test("survey-test") {}

  survey found(int levels, std::uint64_t most = 1u << 20) {
    const unique_fd folder(::open(base.c_str(), O_RDONLY | O_DIRECTORY));
    return survey_folder(folder.get(), levels, most);
  }
  /// "above/name" of each.
  static std::vector<std::string> names(const survey& s) {
    std::vector<std::string> all;
    for (const kept_unit& unit : s.units) all.push_back(unit.above + "/" + unit.name);
    return all;
  }
};

TEST_F(survey_test, finds_units_on_the_level_that_is_asked_for) {
  fs::create_directories(base + "/AA/one/deep");
  fs::create_directories(base + "/AA/two");
  std::ofstream(base + "/BB") << "x";
  EXPECT_THAT(names(found(1)), testing::UnorderedElementsAre("/AA", "/BB"));
  EXPECT_THAT(names(found(2)), testing::UnorderedElementsAre("AA/one", "AA/two", "/BB"));
}

TEST_F(survey_test, counts_files_of_any_size_links_and_folders) {
  EXPECT_EQ(found(1).bytes, 0u);
  fs::create_directories(base + "/AA");
  std::ofstream(base + "/AA/empty");
  fs::create_symlink("/usr", base + "/AA/link");
  std::ofstream(base + "/AA/large") << std::string(100'000, 'x');
  const survey all = found(1);
  EXPECT_TRUE(all.sound);
  EXPECT_GE(all.bytes, 3 * least_entry_bytes + 100'000);
  EXPECT_LT(all.bytes, 130'000u);
  ASSERT_EQ(all.units.size(), 1u);
  EXPECT_EQ(all.units[0].bytes, all.bytes);
}

TEST_F(survey_test, takes_the_latest_change_of_anything_in_a_unit_for_its_use) {
  fs::create_directories(base + "/AA/one");
  std::ofstream(base + "/AA/one/file") << "x";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(base + "/AA/one", now - std::chrono::hours(3));
  fs::last_write_time(base + "/AA", now - std::chrono::hours(2));
  const auto used = [&] { return found(1).units.at(0).used; };
  const std::int64_t later = used();
  fs::last_write_time(base + "/AA/one/file", now - std::chrono::hours(1));
  EXPECT_NEAR(static_cast<double>(later - used()), 3600e9, 60e9);
}

TEST_F(survey_test, passes_over_folders_that_are_removed_meanwhile) {
  fs::create_directory(base + "/gone");
  const unique_fd folder(::open((base + "/gone").c_str(), O_RDONLY | O_DIRECTORY));
  fs::remove(base + "/gone");
  const survey all = survey_folder(folder.get(), 1, 1u << 20);
  EXPECT_TRUE(all.sound);
  EXPECT_EQ(all.bytes, 0u);
}

TEST_F(survey_test, gives_up_what_is_too_much_too_deep_or_neither_file_nor_folder) {
  std::ofstream(base + "/file") << std::string(10'000, 'x');
  EXPECT_FALSE(found(1, 9'999).sound);
  EXPECT_TRUE(found(1, 20'000).sound);
  std::string path = base;
  for (int i = 0; i < 17; ++i) fs::create_directory(path += "/d");
  EXPECT_FALSE(found(1).sound);
  fs::remove_all(base + "/d");
  EXPECT_TRUE(found(1).sound);
  ASSERT_EQ(::mkfifo((base + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(found(1).sound);
}

}  // namespace
}  // namespace outboard::backend
