#include "backend/worker/device_tally.hh"

#include <gtest/gtest.h>

#include <array>

#include "backend/identity/memory_page.hh"

namespace outboard::backend {
namespace {

constexpr std::array<std::uint64_t, 2> boards{0x1b0001, 0};

struct device_tally_test : testing::Test {
  device_tally_test() : made(memory_page::make().value()) {
    page.clear(0);
    page.clear(1);
    first.open(boards, nullptr, {&page, 0});
    // The other session sees the devices in another order.
    const std::array<std::uint64_t, 1> other{0x1b0001};
    second.open(other, nullptr, {&page, 1});
  }
  static bool take(device_tally& by, std::int32_t device, std::uint64_t bytes, std::uint64_t most = 0) {
    return by.add_within(device, bytes, most);
  }

  std::pair<unique_fd, memory_page> made;
  memory_page& page = made.second;
  device_tally first, second;
};

TEST_F(device_tally_test, sessions_of_an_identity_share_what_it_may_hold_of_a_device) {
  page.set_limits({.device = 100});
  EXPECT_TRUE(take(first, 0, 60));
  EXPECT_FALSE(take(second, 0, 41));
  EXPECT_TRUE(take(second, 0, 40));
  EXPECT_TRUE(take(first, 1, 100)) << "another device";
  EXPECT_EQ(first.left(0, 0), 0u);
  EXPECT_EQ(second.bytes(0), 40u);
  first.take(0, 60);
  EXPECT_EQ(second.left(0, 0), 60u);
  EXPECT_EQ(second.left(0, 50), 10u) << "the session's own limit is nearer";
  EXPECT_FALSE(take(second, 0, 11, 50));
}

TEST_F(device_tally_test, a_reservation_keeps_room_until_it_ends) {
  page.set_limits({.device = 100});
  {
    device_tally::reservation room;
    ASSERT_TRUE(first.reserve(0, 80, 0, room));
    EXPECT_EQ(second.left(0, 0), 20u);
    EXPECT_EQ(first.bytes(0), 0u);
    first.add(0, 80);
  }
  EXPECT_EQ(second.left(0, 0), 20u);
  first.take(0, 80);
  EXPECT_EQ(second.left(0, 0), 100u);
}

TEST_F(device_tally_test, the_machine_counts_like_a_device) {
  page.set_limits({.device = 0, .host = 100, .session_host = 70});
  EXPECT_EQ(first.most_of_machine(), 70u);
  EXPECT_FALSE(take(first, this_machine, 71, first.most_of_machine()));
  EXPECT_TRUE(take(first, this_machine, 70, first.most_of_machine()));
  EXPECT_FALSE(take(second, this_machine, 31, second.most_of_machine()));
  EXPECT_TRUE(take(second, this_machine, 30, second.most_of_machine()));
  EXPECT_EQ(first.bytes(this_machine), 70u);
  first.add_pooled(this_machine, 5);
  EXPECT_EQ(first.pooled(this_machine), 5u);
  EXPECT_EQ(page.held(0, host_column), 75u);
}

TEST_F(device_tally_test, without_a_limit_all_is_counted_and_nothing_refused) {
  EXPECT_FALSE(first.is_limited(0, 0));
  EXPECT_TRUE(take(first, 0, 1ull << 50));
  EXPECT_EQ(first.left(0, 0), ~std::uint64_t{0});
  page.set_limits({.device = 1ull << 40});
  EXPECT_TRUE(first.is_limited(0, 0));
  EXPECT_FALSE(take(second, 0, 1)) << "what was there before the limit counts";
}

TEST_F(device_tally_test, nonsense_of_another_worker_does_not_loosen_a_sessions_own_limit) {
  page.set_limits({.device = 1000});
  ASSERT_TRUE(take(first, 0, 60, 100));
  page.clear(0);
  page.add(0, page.find_column(boards[0]).value(), ~std::uint64_t{0} - 1000);
  EXPECT_FALSE(take(first, 0, 41, 100));
  EXPECT_EQ(first.bytes(0), 60u);
}

TEST(device_tally, without_a_page_only_the_session_counts) {
  device_tally own;
  own.open(boards, nullptr);
  EXPECT_TRUE(own.add_within(0, 90, 100));
  EXPECT_FALSE(own.add_within(0, 11, 100));
  EXPECT_FALSE(own.add_within(0, ~std::uint64_t{0}, 100));
  EXPECT_EQ(own.left(0, 100), 10u);
  EXPECT_GT(own.most_of_machine(), 0u);
  EXPECT_TRUE(own.add_within(99, 1000, 100)) << "no such device: not counted";
  EXPECT_EQ(own.bytes(99), 0u);
}

}  // namespace
}  // namespace outboard::backend
