#include "backend/session/side_launches.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

class mix : public testing::Test {
 protected:
  /// So many launches of two lanes in turns.
  void launch(int times) {
    for (int i = 0; i < times; ++i) mixed_ = mix_.note(1 + i % 2, now_ += 2us);
  }
  launch_mix mix_;
  bool mixed_ = false;
  std::chrono::steady_clock::time_point now_{1s};
};

TEST_F(mix, of_two_lanes_is_worth_a_wake_up_soon_and_a_reader_of_its_own_later) {
  launch(20);
  EXPECT_FALSE(mixed_);
  launch(30);
  EXPECT_TRUE(mixed_);
  EXPECT_FALSE(mix_.goes_on());
  launch(500);
  EXPECT_TRUE(mix_.goes_on());
}

TEST_F(mix, is_interrupted_by_whatever_else_is_asked) {
  launch(600);
  ASSERT_TRUE(mix_.goes_on());
  mix_.interrupted();
  EXPECT_FALSE(mix_.goes_on());
  launch(100);
  EXPECT_TRUE(mixed_);
  EXPECT_FALSE(mix_.goes_on());
}

TEST_F(mix, of_one_lane_alone_is_none) {
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(mix_.note(1, now_ += 2us));
  EXPECT_FALSE(mix_.goes_on());
  launch(600);
  ASSERT_TRUE(mix_.goes_on());
  for (int i = 0; i < 2000; ++i) mixed_ = mix_.note(1, now_ += 2us);
  EXPECT_FALSE(mixed_);
  EXPECT_FALSE(mix_.goes_on());
}

}  // namespace
}  // namespace outboard::backend
