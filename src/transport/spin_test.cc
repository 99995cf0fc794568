#include "transport/spin.hh"

#include <gtest/gtest.h>

namespace outboard::transport {
namespace {

using namespace std::chrono_literals;

TEST(spin_habit, is_kept_through_a_few_long_waits_and_dropped_after_many) {
  spin_habit habit;
  EXPECT_TRUE(habit.worth());
  for (int i = 0; i < 7; ++i) habit.waited(1ms, 50us);
  EXPECT_TRUE(habit.worth());
  habit.waited(1ms, 50us);
  EXPECT_FALSE(habit.worth());
}

TEST(spin_habit, comes_back_with_the_first_wait_that_would_have_been_worth_it) {
  spin_habit habit;
  for (int i = 0; i < 100; ++i) habit.waited(1ms, 50us);
  ASSERT_FALSE(habit.worth());
  habit.waited(60us, 50us);  // a sleeper is woken a little late
  EXPECT_TRUE(habit.worth());
}

TEST(spin_habit, holds_where_half_of_the_waits_are_short) {
  spin_habit habit;
  for (int i = 0; i < 100; ++i) {
    habit.waited(i % 2 ? 1ms : 5us, 50us);
    EXPECT_TRUE(habit.worth());
  }
}

}  // namespace
}  // namespace outboard::transport
