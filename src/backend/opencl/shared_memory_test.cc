#include "backend/opencl/shared_memory.hh"

#include <gtest/gtest.h>

namespace outboard::backend::opencl {
namespace {

TEST(shared_memory, holds_what_lies_in_one_block) {
  shared_memory all;
  all.add(0x1000, {0x100, nullptr});
  all.add(0x1100, {0x100, nullptr});
  EXPECT_TRUE(all.holds(0x1000, 0x100));
  EXPECT_TRUE(all.holds(0x10ff, 1));
  EXPECT_TRUE(all.holds(0x1100, 0x100));
  EXPECT_FALSE(all.holds(0x1000, 0x101)) << "the next block is another one";
  EXPECT_FALSE(all.holds(0xfff, 2));
  EXPECT_FALSE(all.holds(0x1200, 1));
  EXPECT_FALSE(all.holds(0x1000, 0));
  EXPECT_FALSE(all.holds(0x1010, ~std::uint64_t{0}));
  EXPECT_FALSE(all.holds(0, 1));
}

TEST(shared_memory, forgets_what_is_taken) {
  shared_memory all;
  all.add(0x1000, {0x100, reinterpret_cast<cl_context>(1)});
  EXPECT_EQ(all.take(0x1010).context, nullptr);
  EXPECT_EQ(all.take(0x1000).size, 0x100u);
  EXPECT_EQ(all.take(0x1000).context, nullptr);
  EXPECT_FALSE(all.holds(0x1000, 1));
}

}  // namespace
}  // namespace outboard::backend::opencl
