#include "frontend/profile/profile_clock.hh"

#include <gtest/gtest.h>

#include <utility>

namespace outboard::frontend {
namespace {

constexpr std::int64_t second = 1'000'000'000;

TEST(profile_clock, the_quickest_question_of_a_look_counts) {
  profile_clock clock;
  clock.begin_look();
  // Theirs is 5 s behind; an answer that comes late says little.
  clock.note(10 * second, 5 * second + 1'000, 5 * second + 1'000, 10 * second + 80'000);
  EXPECT_EQ(clock.error(), 40'000);
  EXPECT_EQ(clock.ours(5 * second), 10 * second + 39'000);
  clock.note(10 * second + 100'000, 5 * second + 105'000, 5 * second + 105'000, 10 * second + 110'000);
  EXPECT_EQ(clock.error(), 5'000);
  EXPECT_EQ(clock.ours(5 * second), 10 * second);
  clock.note(10 * second + 200'000, 5 * second + 255'000, 5 * second + 255'000, 10 * second + 260'000);
  EXPECT_EQ(clock.ours(5 * second), 10 * second);
}

TEST(profile_clock, between_two_looks_a_clock_moves_evenly) {
  profile_clock clock;
  clock.begin_look();
  clock.note(10 * second, 5 * second, 5 * second, 10 * second);
  clock.begin_look();
  // Theirs has gained 100 us in a second.
  clock.note(11 * second, 6 * second + 100'000, 6 * second + 100'000, 11 * second);
  EXPECT_EQ(clock.ours(5 * second), 10 * second);
  EXPECT_EQ(clock.ours(6 * second + 100'000), 11 * second);
  EXPECT_NEAR(static_cast<double>(clock.ours(5 * second + second / 2 + 50'000)), 10.5e9, 2);
  // What was before the first look, or comes after the last, stays beside it.
  EXPECT_EQ(clock.ours(4 * second), 9 * second);
  EXPECT_EQ(clock.ours(7 * second + 100'000), 12 * second);
}

TEST(profile_clock, what_looks_differ_by_does_not_stretch_the_time_between_them) {
  constexpr std::int64_t ms = 1'000'000, ahead = 3 * second;
  profile_clock clock;
  const auto look = [&](std::int64_t at, std::int64_t took) {
    clock.begin_look();
    clock.note(at, at + ahead, at + ahead, at + took);
  };
  look(second, 40'000);      // 20 us, to 20 us
  look(second + 5 * ms, 0);  // 0
  EXPECT_EQ(clock.ours(second + ahead), second + 20'000);
  EXPECT_EQ(clock.ours(second + 5 * ms + ahead), second + 5 * ms + 15'000);
  look(2 * second, 0);
  EXPECT_EQ(clock.ours(second + 5 * ms + ahead), second + 5 * ms + 15'000);  // as before
  EXPECT_EQ(clock.ours(2 * second + ahead), 2 * second);
}

TEST(profile_clock, one_clock_of_one_machine_is_not_guessed) {
  profile_clock clock;
  clock.begin_look();
  clock.note(second, second + 30'000, second + 31'000, second + 32'000);  // by half of the way: 14 us off
  EXPECT_EQ(clock.ours(second + 50'000), second + 50'000);
  EXPECT_EQ(clock.error(), 0);
}

TEST(profile_clock, a_step_is_followed) {
  profile_clock clock;
  clock.begin_look();
  clock.note(second, second, second, second + 2'000);
  clock.begin_look();
  clock.note(2 * second, 100 * second, 100 * second, 2 * second + 2'000);
  EXPECT_EQ(clock.ours(100 * second), 2 * second + 1'000);
}

TEST(profile_clock, the_error_is_that_of_the_worst_look_so_far) {
  profile_clock clock;
  for (const auto& [at, took] : {std::pair{1, 20'000}, {2, 90'000}, {3, 10'000}, {4, 10'000}}) {
    clock.begin_look();
    clock.note(at * second, 5 * second, 5 * second, at * second + took);
    EXPECT_EQ(clock.error(), at == 1 ? 10'000 : 45'000);
  }
}

TEST(profile_clock, a_look_without_an_answer_leaves_the_last_one) {
  profile_clock clock;
  clock.begin_look();
  clock.note(1'000, 5 * second, 5 * second, 3'000);
  clock.begin_look();
  EXPECT_EQ(clock.ours(5 * second + 7), 2'007);
}

TEST(profile_clock, what_the_server_took_for_its_answer_does_not_count) {
  profile_clock clock;
  clock.begin_look();
  clock.note(1'000, 5 * second, 5 * second + 200'000, 205'000);
  EXPECT_EQ(clock.error(), 2'000);
  EXPECT_EQ(clock.ours(5 * second), 3'000);
}

}  // namespace
}  // namespace outboard::frontend
