#include "frontend/cuda/code/launch_shape.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cuda {
namespace {

/// A device as a real one describes itself, and a kernel of a cubin.
struct launch_shape_test : testing::Test {
  launch_shape_test() {
    limits.grid = {0x7fffffff, 65535, 65535};
    limits.block = {1024, 1024, 64};
    limits.threads = 1024;
    limits.registers = 65536;
    facts.registers = 32;
    facts.static_shared = 0;
    facts.max_threads = 1024;
    kernel.facts = &facts;
    shape.grid = {100, 1, 1};
    shape.block = {256, 1, 1};
  }
  prospect judged() const { return judge(shape, kernel, limits); }

  launch_limits limits;
  marshal::kernel_info facts;
  kernel_object kernel;
  launch_shape shape;
};

TEST_F(launch_shape_test, an_ordinary_launch_is_good) {
  EXPECT_EQ(judged(), prospect::good);
  shape.grid = {0x7fffffff, 1, 1};
  shape.block = {32, 32, 1};
  EXPECT_EQ(judged(), prospect::good);
}

TEST_F(launch_shape_test, sizes_outside_the_limits_are_bad) {
  const launch_shape fine = shape;
  shape.block = {2048, 1, 1};
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, shape.block = {64, 64, 1};
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, shape.block = {1, 1, 65};
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, shape.grid = {1, 65536, 1};
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, shape.grid = {0, 1, 1};
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, shape.block = {1, 0, 1};
  EXPECT_EQ(judged(), prospect::bad);
}

TEST_F(launch_shape_test, a_kernel_bound_to_fewer_threads_is_bad_above_them) {
  facts.max_threads = 128;
  EXPECT_EQ(judged(), prospect::bad);
  shape.block = {128, 1, 1};
  EXPECT_EQ(judged(), prospect::good);
}

TEST_F(launch_shape_test, shared_memory_beyond_what_was_asked_for_is_for_the_driver_to_judge) {
  shape.shared = 48 << 10;
  EXPECT_EQ(judged(), prospect::good);
  shape.shared += 1;
  EXPECT_EQ(judged(), prospect::doubtful);
  kernel.dynamic_shared_limit = 100 << 10;
  EXPECT_EQ(judged(), prospect::good);
  facts.static_shared = -1;
  kernel.dynamic_shared_limit = 0;
  EXPECT_EQ(judged(), prospect::doubtful);
}

TEST_F(launch_shape_test, registers_that_may_not_suffice_are_doubtful) {
  shape.block = {1024, 1, 1};
  facts.registers = 64;  // 64 x 1024 = all there are
  EXPECT_EQ(judged(), prospect::good);
  facts.registers = 65;
  EXPECT_EQ(judged(), prospect::doubtful);
  facts.registers = -1;
  EXPECT_EQ(judged(), prospect::doubtful);
  shape.block = {256, 1, 1};
  EXPECT_EQ(judged(), prospect::good);
}

TEST_F(launch_shape_test, what_only_the_driver_can_judge_is_doubtful) {
  const launch_shape fine = shape;
  shape.cooperative = true;
  EXPECT_EQ(judged(), prospect::doubtful);
  shape = fine, shape.cluster = {2, 1, 1};
  EXPECT_EQ(judged(), prospect::doubtful);
  shape = fine, shape.cluster = {3, 1, 1};  // 100 blocks are no whole clusters
  EXPECT_EQ(judged(), prospect::bad);
  shape = fine, facts.required_block[0] = 128, facts.required_block[1] = facts.required_block[2] = 1;
  EXPECT_EQ(judged(), prospect::doubtful);
  shape.block = {128, 1, 1};
  EXPECT_EQ(judged(), prospect::good);
  kernel.facts = nullptr;
  EXPECT_EQ(judged(), prospect::doubtful);
}

TEST_F(launch_shape_test, a_device_without_an_attribute_lets_nothing_pass) {
  marshal::device_facts empty;
  limits = launch_limits::of(empty);
  EXPECT_EQ(judged(), prospect::bad);
}

TEST(shape_key, tells_apart_what_the_answer_depends_on) {
  launch_shape a;
  a.grid = {10, 1, 1}, a.block = {64, 1, 1}, a.cluster = {2, 1, 1};
  launch_shape b = a;
  b.grid = {1000, 1, 1};
  EXPECT_EQ(shape_key(a, 0), shape_key(b, 0));  // a bigger grid of the same clusters
  b.shared = 1;
  EXPECT_NE(shape_key(a, 0), shape_key(b, 0));
  b = a, b.block = {1, 64, 1};
  EXPECT_NE(shape_key(a, 0), shape_key(b, 0));
  a.cooperative = b.cooperative = true, b = a, b.grid = {11, 1, 1};
  EXPECT_NE(shape_key(a, 0), shape_key(b, 0));     // all blocks must fit at once
  EXPECT_NE(shape_key(a, 0), shape_key(a, 1024));  // accepted under another limit
  EXPECT_NE(shape_key({}, 0), 0u);
}

TEST(shape_memory, holds_what_was_kept) {
  shape_memory memory;
  EXPECT_FALSE(memory.holds(5));
  memory.keep(5);
  EXPECT_TRUE(memory.holds(5));
  EXPECT_FALSE(memory.holds(37));  // at the same place
}

TEST(shape_memory, keeps_several_of_one_place_and_loses_one_beyond_them) {
  shape_memory memory;
  for (std::uint64_t i = 0; i < 8; ++i) memory.keep(5 + 32 * i);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(memory.holds(5 + 32 * i)) << i;
  memory.keep(5 + 32 * 8);
  EXPECT_TRUE(memory.holds(5 + 32 * 8));
  int held = 0;
  for (std::uint64_t i = 0; i < 8; ++i) held += memory.holds(5 + 32 * i);
  EXPECT_EQ(held, 7);
}

}  // namespace
}  // namespace outboard::frontend::cuda
