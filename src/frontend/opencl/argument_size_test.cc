#include "frontend/opencl/argument_size.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::opencl {
namespace {

TEST(argument_size, scalars_and_vectors_of_the_language) {
  EXPECT_EQ(size_of_type("int"), 4u);
  EXPECT_EQ(size_of_type("unsigned char"), 1u);
  EXPECT_EQ(size_of_type("ulong"), 8u);
  EXPECT_EQ(size_of_type("half"), 2u);
  EXPECT_EQ(size_of_type("float2"), 8u);
  EXPECT_EQ(size_of_type("char3"), 4u);  // as large as four, by the standard
  EXPECT_EQ(size_of_type("double4"), 32u);
  EXPECT_EQ(size_of_type("short8"), 16u);
  EXPECT_EQ(size_of_type("long16"), 128u);
}

TEST(argument_size, only_the_device_knows_sizes_the_language_does_not_fix) {
  for (const char* name :
       {"", "size_t", "struct pair", "float5", "float1", "float22", "4", "my_type", "int*"})
    EXPECT_EQ(size_of_type(name), 0u) << name;
}

}  // namespace
}  // namespace outboard::frontend::opencl
