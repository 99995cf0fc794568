#include "bench/verdict.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

compared_row compared(std::string_view name, std::vector<double> ours, std::vector<double> native) {
  return {find_row(name), summarize(std::move(ours)), summarize(std::move(native))};
}

/// The part of the sentence that begins so.
std::string part(const std::string& sentence, const std::string& from) {
  const auto at = sentence.find(from);
  return at == sentence.npos ? "" : sentence.substr(at, sentence.find(';', at) - at);
}

TEST(verdict, says_which_programs_are_ahead_level_and_behind) {
  const std::vector rows{compared("launches", {300}, {200}), compared("step", {20}, {10}),
                         compared("in_locked_1m", {10.1}, {10}), compared("allocate", {1}, {100})};
  const std::string said = verdict(rows);
  EXPECT_THAT(part(said, "ahead"), HasSubstr("launch much and wait seldom (1.50)"));
  EXPECT_THAT(part(said, "ahead"), HasSubstr("allocate all the time (100.00)"));
  EXPECT_THAT(part(said, "level"), HasSubstr("copy large blocks (1.01)"));
  EXPECT_THAT(part(said, "behind"), HasSubstr("wait for each small step (0.50)"));
}

TEST(verdict, turns_with_the_rows) {
  const std::vector rows{compared("launches", {200}, {300}), compared("step", {10}, {20})};
  EXPECT_THAT(part(verdict(rows), "ahead"), HasSubstr("wait for each small step (2.00)"));
  EXPECT_THAT(part(verdict(rows), "behind"), HasSubstr("launch much and wait seldom (0.67)"));
}

TEST(verdict, decides_nothing_within_the_noise) {
  EXPECT_THAT(verdict(std::vector{compared("step", {12, 12.1, 12.2}, {10, 10, 10})}), HasSubstr("behind"));
  const std::string said = verdict(std::vector{compared("step", {9, 12, 15}, {10, 10, 10})});
  EXPECT_THAT(
      said,
      HasSubstr("not decided, the runs lie too far apart: programs that wait for each small step (0.83)"));
  EXPECT_THAT(said, Not(HasSubstr("behind")));
}

TEST(verdict, takes_the_mean_of_ratios_not_of_times) {
  // Twice as fast in one row, half as fast in the other, with times of different size.
  const std::vector rows{compared("step", {1000}, {2000}), compared("query", {2}, {1})};
  EXPECT_THAT(part(verdict(rows), "level"), HasSubstr("(1.00)"));
}

TEST(verdict, says_what_a_wait_costs_on_top_and_what_the_line_takes) {
  std::vector rows{compared("launch_wait", {18.1}, {10})};
  EXPECT_THAT(verdict(rows), HasSubstr("costs 8.1 us more than natively."));
  rows.push_back(compared(line_row, {7.2}, {}));
  EXPECT_THAT(verdict(rows), HasSubstr("costs 8.1 us more than natively; the line alone takes 7.2 us."));
  rows.back() = compared(line_row, {18.2}, {});  // no part of it
  EXPECT_THAT(verdict(rows), Not(HasSubstr("the line")));
  rows.front() = compared("launch_wait", {9}, {10});
  EXPECT_THAT(verdict(rows), HasSubstr("costs 1.0 us less than natively"));
}

TEST(verdict, names_no_cost_where_runs_overlap) {
  const std::string said = verdict(std::vector{compared("launch_wait", {12, 18, 20}, {9, 10, 13})});
  EXPECT_THAT(said, HasSubstr("cannot be told"));
  EXPECT_THAT(said, Not(HasSubstr("us more")));
  EXPECT_THAT(verdict(std::vector{compared("launch_wait", {14, 18, 20}, {9, 10, 13})}),
              HasSubstr("8.0 us more"));
}

TEST(verdict, without_native_says_what_goes_through) {
  const std::vector rows{compared("launch_wait", {20}, {}),   compared("launches", {440}, {}),
                         compared("in_pageable_1m", {3}, {}), compared("in_locked_bulk", {9.5}, {}),
                         compared("in_locked_4k", {100}, {}), compared("out_locked_1m", {8}, {})};
  const std::string said = verdict(rows);
  EXPECT_THAT(
      said,
      HasSubstr(
          "takes 20.0 us: a program that waits 1000 times a second spends 2.0 % of its time in waits."));
  EXPECT_THAT(said, HasSubstr("440 thousand launches a second, 9.50 GB/s in, 8.00 GB/s out."));
  EXPECT_THAT(said, Not(HasSubstr("native")));
  EXPECT_THAT(verdict(std::vector{compared("launch_wait", {2500}, {})}),
              HasSubstr("no program can wait more than 400 times a second"));
}

TEST(verdict, of_nothing_says_nothing) {
  EXPECT_EQ(verdict({}), "");
  EXPECT_EQ(verdict(std::vector{compared_row{find_row("step")}}), "");
}

TEST(doubts, tell_of_busy_machines) {
  EXPECT_THAT(doubts({}, std::vector<machine_load>{{"this machine", 0.4, 2}, {"the server", 4, 16}}),
              IsEmpty());
  const auto said = doubts({}, std::vector<machine_load>{{"this machine", 0.6, 2}, {"the server", 4.5, 16}});
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("this machine was busy"));
  EXPECT_THAT(said[1], HasSubstr("the server was busy"));
}

TEST(doubts, tell_of_runs_that_lie_apart) {
  const std::vector rows{compared("step", {10, 11, 12}, {}), compared("query", {10, 10, 14}, {}),
                         compared("launches", {10, 10, 10}, {10, 10, 20})};
  EXPECT_FALSE(is_doubtful(rows[0]));
  EXPECT_TRUE(is_doubtful(rows[1]));
  EXPECT_TRUE(is_doubtful(rows[2]));
  const auto said = doubts(rows, {});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("2 of 3 rows"));
}

}  // namespace
}  // namespace outboard::bench
