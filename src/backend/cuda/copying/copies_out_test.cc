#include "backend/cuda/copying/copies_out.hh"

#include <gtest/gtest.h>

#include "device/mock/mock.hh"
#include "wire/frame.hh"

namespace outboard::backend {
namespace {

class copies_out_test : public testing::Test {
 protected:
  copies_out_test() : device_(std::move(*device::mock::open())), table_(device_->cuda()) { table_.cuInit(0); }
  staging::block wait_for(std::uint64_t ticket, std::uint64_t context, std::uint64_t offset = 0) {
    staging::block block = stage_.take(1000, context);
    EXPECT_EQ(table_.cuEventCreate(&block.done, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    copies_.add(ticket, offset, 1000, block);
    return block;
  }

  std::unique_ptr<device::mock::mock_device> device_;
  const api::driver_table& table_;
  staging stage_{table_};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sent_;  ///< ticket and offset
  copies_out copies_{table_, stage_,
                     [this](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte>) {
                       sent_.emplace_back(ticket, offset);
                     },
                     [](auto...) { return false; }};
};

/// The driver may not be asked for events of a context that is gone.
TEST_F(copies_out_test, those_of_a_context_that_ends_fail_and_are_asked_for_no_more) {
  const staging::block first = wait_for(1, 7), other = wait_for(2, 8);
  device_->fail("cuEventQuery", CUDA_ERROR_NOT_READY);
  EXPECT_FALSE(copies_.flush());
  const auto blocks = copies_.take_out(7);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].data, first.data);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0], std::pair(std::uint64_t{1}, std::uint64_t{wire::copy_failed}));
  device_->fail("cuEventQuery", CUDA_SUCCESS);
  const std::uint64_t asked = device_->calls("cuEventQuery");
  EXPECT_TRUE(copies_.flush());
  EXPECT_EQ(device_->calls("cuEventQuery"), asked + 1);
  EXPECT_EQ(sent_.back(), std::pair(std::uint64_t{2}, std::uint64_t{0}));
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(stage_.take(1000, 8).data, other.data);
}

/// Nothing that stands for the bytes may leave before them: neither another reply nor a host function.
TEST_F(copies_out_test, bytes_that_leave_with_a_reply_count_until_it_has_left) {
  wait_for(1, 7);
  int together = 0;
  {
    const auto leaving = copies_.flush_with([&](auto...) { ++together; });
    EXPECT_EQ(together, 1);
    EXPECT_FALSE(copies_.empty());
  }
  EXPECT_TRUE(copies_.empty());
  {
    const auto none = copies_.flush_with([&](auto...) { ++together; });
  }
  EXPECT_EQ(together, 1);
  wait_for(2, 7);  // the lock was given back
}

/// The client's copy ends with its last byte; what came later would be nobody's.
TEST_F(copies_out_test, bytes_of_one_copy_leave_in_their_order) {
  for (const std::uint64_t offset : {0, 1000}) wait_for(1, 7, offset);
  device_->fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1);  // and the next moment all are complete
  EXPECT_TRUE(copies_.flush());
  using places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(sent_, (places{{1, 0}}));
  EXPECT_TRUE(copies_.flush());
  EXPECT_EQ(sent_, (places{{1, 0}, {1, 1000}}));
}

/// Two copies of one stream to the same place: the first may become complete between two questions, and the
/// second with it. Whoever comes last is asked first, so it never leaves alone.
TEST_F(copies_out_test, a_later_copy_never_leaves_before_an_earlier_one_that_it_came_behind) {
  for (const std::uint64_t ticket : {1, 2, 3}) wait_for(ticket, 7);
  device_->fail("cuEventQuery", CUDA_ERROR_NOT_READY, 2);  // then the first is complete
  EXPECT_TRUE(copies_.flush());
  using places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(sent_, (places{{1, 0}}));
  EXPECT_TRUE(copies_.flush());
  EXPECT_EQ(sent_, (places{{1, 0}, {2, 0}, {3, 0}}));
}

}  // namespace
}  // namespace outboard::backend
