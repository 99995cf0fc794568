#include "api/opencl/coverage.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "api/opcodes.hh"
#include "api/opencl/functions.hh"

namespace outboard::api::opencl {
namespace {

TEST(opencl_coverage, the_committed_page_is_what_the_tables_say) {
  std::ifstream file(OUTBOARD_DOCS_DIR "/coverage-opencl.md");
  ASSERT_TRUE(file) << OUTBOARD_DOCS_DIR "/coverage-opencl.md";
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(committed == coverage_page()) << "print it anew: outboard_coverage docs";
  EXPECT_THAT(changed_opcodes(committed, coverage_page()), testing::IsEmpty());
  EXPECT_EQ(opcodes_in(committed).size(), functions().size());
}

}  // namespace
}  // namespace outboard::api::opencl
