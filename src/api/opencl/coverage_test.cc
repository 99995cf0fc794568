#include "api/opencl/coverage.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace outboard::api::opencl {
namespace {

TEST(opencl_coverage, the_committed_page_is_what_the_tables_say) {
  std::ifstream file(OUTBOARD_DOCS_DIR "/coverage-opencl.md");
  ASSERT_TRUE(file) << OUTBOARD_DOCS_DIR "/coverage-opencl.md";
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page())
      << "print it anew: outboard_coverage opencl > docs/coverage-opencl.md";
}

}  // namespace
}  // namespace outboard::api::opencl
