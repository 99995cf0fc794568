#include "api/nvml/coverage.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "api/nvml/functions.hh"
#include "api/opcodes.hh"

namespace outboard::api::nvml {
namespace {

TEST(nvml_coverage, the_committed_page_is_what_the_tables_say) {
  std::ifstream file(OUTBOARD_DOCS_DIR "/coverage-nvml.md");
  ASSERT_TRUE(file) << OUTBOARD_DOCS_DIR "/coverage-nvml.md";
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page()) << "print it anew: outboard_coverage docs";
  EXPECT_THAT(changed_opcodes(committed, coverage_page()), testing::IsEmpty());
  EXPECT_EQ(opcodes_in(committed).size(), functions().size());
}

TEST(nvml_coverage, every_refused_function_has_a_reason) {
  for (const function_info& f : functions()) {
    EXPECT_EQ(f.about.how == kind::refused, !refusal_reason(f.text).empty()) << f.name;
  }
}

TEST(nvml_coverage, the_page_names_every_function) {
  const std::string page = coverage_page();
  for (const function_info& f : functions()) {
    const std::string word = " " + std::string(f.name);
    const bool found =
        page.find(word + " ") != std::string::npos || page.find(word + "\n") != std::string::npos;
    EXPECT_TRUE(found) << f.name;
  }
}

}  // namespace
}  // namespace outboard::api::nvml
