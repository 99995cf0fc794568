#include "frontend/opencl/memory_claim.hh"

#include <gtest/gtest.h>

#include "frontend/opencl/back_ends.hh"
#include "frontend/opencl/kinds.hh"

namespace outboard::frontend::opencl {
namespace {

constexpr std::uint64_t limit = 1000;

/// A device of a back-end without a connection.
class memory_claim_test : public testing::Test {
 protected:
  memory_claim_test() : here_(&home_) {
    whole_ = device(nullptr, limit);
    context_.devices = {whole_};
  }
  static cl_device_id device(cl_device_id parent, std::uint64_t most) {
    static std::uint64_t last = 1u << 20;
    auto info = std::make_unique<device_info>();
    info->memory_limit = most;
    info->parent = needed(parent);
    return reinterpret_cast<cl_device_id>(make_named(handle_kind::cl_device, ++last, std::move(info)));
  }
  cl_int take(std::uint64_t bytes, memory_claim& claim) { return memory_claim::take(context_, bytes, claim); }
  std::uint64_t held() const { return find<device_info>(whole_)->held.load(); }

  peer home_;
  const at_home here_;
  cl_device_id whole_ = nullptr;
  context_info context_;
};

TEST_F(memory_claim_test, refuses_more_than_the_limit) {
  memory_claim first, second, third;
  EXPECT_EQ(take(600, first), CL_SUCCESS);
  EXPECT_EQ(take(401, second), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(take(~std::uint64_t{0}, second), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(held(), 600u) << "what was refused was never held";
  EXPECT_EQ(home_.dying.load(), 0u);
  EXPECT_EQ(take(400, second), CL_SUCCESS);
  EXPECT_EQ(take(0, third), CL_SUCCESS);
  EXPECT_EQ(held(), limit);
}

TEST_F(memory_claim_test, released_memory_may_be_in_use_until_the_server_says_otherwise) {
  memory_claim second;
  {
    memory_claim first;
    EXPECT_EQ(take(600, first), CL_SUCCESS);
    memory_claim moved = std::move(first);
    EXPECT_EQ(held(), 600u);
  }
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(home_.dying.load(), 600u);
  EXPECT_EQ(take(500, second), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(take(400, second), CL_SUCCESS);
  home_.dying.store(0);
  memory_claim third;
  EXPECT_EQ(take(600, third), CL_SUCCESS);
}

TEST_F(memory_claim_test, a_part_counts_as_the_whole_device) {
  const cl_device_id part = device(whole_, limit);
  context_.devices = {part, whole_};
  memory_claim first, second;
  EXPECT_EQ(take(700, first), CL_SUCCESS);
  EXPECT_EQ(held(), 700u) << "once";
  EXPECT_EQ(take(400, second), CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

TEST_F(memory_claim_test, without_a_limit_nothing_is_counted) {
  context_.devices = {device(nullptr, 0)};
  memory_claim claim;
  EXPECT_EQ(take(1ull << 60, claim), CL_SUCCESS);
  EXPECT_EQ(held(), 0u);
}

}  // namespace
}  // namespace outboard::frontend::opencl
