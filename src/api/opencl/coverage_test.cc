#include "api/opencl/coverage.hh"
#include "base/testing/places.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace outboard::api::opencl {
namespace {

TEST(opencl_coverage, the_committed_page_is_what_the_tables_say) {
  const std::string path = in_checkout("docs/coverage-opencl.md");
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page())
      << "print it anew: outboard_coverage opencl > docs/coverage-opencl.md";
}

}  // namespace
}  // namespace outboard::api::opencl
