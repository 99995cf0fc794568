#include "api/cuda/coverage.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "api/cuda/functions.hh"
#include "api/opcodes.hh"

namespace outboard::api {
namespace {

TEST(coverage, the_committed_page_is_what_the_tables_say) {
  std::ifstream file(OUTBOARD_DOCS_DIR "/coverage.md");
  ASSERT_TRUE(file) << OUTBOARD_DOCS_DIR "/coverage.md";
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page()) << "print it anew: outboard_coverage docs";
  EXPECT_THAT(changed_opcodes(committed, coverage_page()), testing::IsEmpty());
}

TEST(coverage, a_function_that_loses_its_opcode_is_noticed) {
  const std::string page = coverage_page();
  EXPECT_EQ(opcodes_in(page).size(), functions().size());
  EXPECT_EQ(opcodes_in(page)[2000], "cuInit");
  std::string other = page;
  const std::size_t at = other.find("| 2000 | cuInit |");
  ASSERT_NE(at, other.npos);
  other.replace(at, 17, "| 2000 | cuExit |");
  EXPECT_THAT(changed_opcodes(page, other),
              testing::ElementsAre(testing::HasSubstr("opcode 2000 was cuInit and is now cuExit")));
  other.replace(at, 8, "| none |");
  EXPECT_THAT(changed_opcodes(page, other),
              testing::ElementsAre(testing::HasSubstr("opcode 2000 was cuInit and is gone")));
  EXPECT_THAT(changed_opcodes(page, page + "| 2099 | cuNew |"), testing::IsEmpty());
}

TEST(coverage, every_refused_function_has_a_reason) {
  for (const function_info& f : functions()) {
    EXPECT_EQ(f.about.how == kind::refused, !refusal_reason(family_of(f.text)).empty()) << f.name;
  }
}

TEST(coverage, the_page_names_every_function) {
  const std::string page = coverage_page();
  for (const function_info& f : functions()) {
    const std::string word = " " + std::string(f.name);
    const bool found =
        page.find(word + " ") != std::string::npos || page.find(word + "\n") != std::string::npos;
    EXPECT_TRUE(found) << f.name;
  }
}

}  // namespace
}  // namespace outboard::api
