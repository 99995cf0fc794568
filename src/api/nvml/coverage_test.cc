#include "api/nvml/coverage.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "api/nvml/functions.hh"
#include "base/testing/places.hh"

namespace outboard::api::nvml {
namespace {

TEST(nvml_coverage, the_committed_page_is_what_the_tables_say) {
  const std::string path = in_checkout("docs/coverage-nvml.md");
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page())
      << "print it anew: outboard_coverage nvml > docs/coverage-nvml.md";
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
