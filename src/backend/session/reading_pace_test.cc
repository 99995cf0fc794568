#include "backend/session/reading_pace.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using std::chrono::microseconds;
using namespace std::chrono_literals;

class reader : public testing::Test {
 protected:
  /// Posts, each so long after the one before. True: napping in the end.
  bool posts(int count, microseconds each) {
    for (int i = 0; i < count; ++i) {
      now_ += each;
      pace_.read(false, [this] { return now_; });
    }
    return pace_.napping();
  }
  /// As posts(), of a program that goes on only once the reader has seen what it posted.
  bool lockstep(int count, microseconds awake, microseconds napping) {
    bool ever = false;
    for (int i = 0; i < count; ++i) ever |= posts(1, pace_.napping() ? napping : awake);
    return ever;
  }
  void call() {
    now_ += 20us;
    pace_.read(true, [this] { return now_; });
  }

  reading_pace pace_;
  reading_pace::clock::time_point now_{1s};
};

TEST_F(reader, naps_once_nothing_was_asked_for_a_while) {
  EXPECT_FALSE(posts(200, 10us));
  EXPECT_TRUE(posts(400, 10us));
  EXPECT_TRUE(posts(100'000, 10us));
}

TEST_F(reader, is_awake_from_the_first_question_on) {
  ASSERT_TRUE(posts(600, 10us));
  call();
  EXPECT_FALSE(pace_.napping());
  EXPECT_FALSE(posts(200, 10us));
  EXPECT_TRUE(posts(400, 10us));
}

TEST_F(reader, never_naps_between_questions) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(posts(100, 10us));
    call();
  }
}

TEST_F(reader, does_not_nap_for_posts_that_come_rarely) { EXPECT_FALSE(posts(5000, 500us)); }

TEST_F(reader, seldom_naps_where_the_program_waits_for_what_it_posts) {
  EXPECT_TRUE(lockstep(1000, 15us, 110us));
  const auto before = now_;
  for (int i = 0; i < 100'000; ++i) posts(1, pace_.napping() ? 110us : 15us);
  // Awake it would take 1.5 s.
  EXPECT_LT(now_ - before, 1600ms);
}

TEST_F(reader, goes_on_napping_though_posts_come_in_phases) {
  for (int step = 0; step < 20; ++step) posts(500, 8us), posts(100, 60us);
  int napping = 0;
  for (int step = 0; step < 100; ++step) napping += posts(500, 8us), napping += posts(100, 60us);
  EXPECT_GT(napping, 180);
}

TEST_F(reader, a_pause_of_the_program_changes_nothing) {
  ASSERT_TRUE(posts(600, 10us));
  now_ += 10s;
  EXPECT_TRUE(posts(600, 10us));
}

}  // namespace
}  // namespace outboard::backend
