#include "bench/summary.hh"

#include <gtest/gtest.h>

namespace outboard::bench {
namespace {

compared_row compared(std::string_view name, double ours, double native) {
  return {find_row(name), summarize({ours}), summarize({native})};
}

TEST(summary, has_the_middle_and_both_ends_of_unsorted_runs) {
  const auto s = summarize({5, 1, 9, 2, 3});
  ASSERT_TRUE(s);
  EXPECT_EQ(s->median, 3);
  EXPECT_EQ(s->lowest, 1);
  EXPECT_EQ(s->highest, 9);
  EXPECT_EQ(s->runs, (std::vector<double>{5, 1, 9, 2, 3}));
  EXPECT_DOUBLE_EQ(s->spread(), 8.0 / 3);
}

TEST(summary, of_nothing_is_nothing) { EXPECT_FALSE(summarize({})); }

TEST(summary, half_the_time_and_twice_the_rate_are_twice_the_speed) {
  EXPECT_DOUBLE_EQ(*speed(compared("launch_wait", 5, 10)), 2);
  EXPECT_DOUBLE_EQ(*ratio(compared("launch_wait", 5, 10)), 0.5);
  EXPECT_DOUBLE_EQ(*speed(compared("launches", 200, 100)), 2);
  EXPECT_DOUBLE_EQ(*ratio(compared("launches", 200, 100)), 2);
  EXPECT_DOUBLE_EQ(*speed(compared("in_locked_1m", 5, 10)), 0.5);
}

TEST(summary, has_no_ratio_where_a_side_is_missing) {
  EXPECT_FALSE(speed({find_row("query"), summarize({1}), {}}));
  EXPECT_FALSE(speed({find_row("query"), {}, summarize({1})}));
  EXPECT_FALSE(speed(compared("query", 1, 0)));
}

TEST(rows, have_names_of_their_own) {
  for (const row& each : rows()) EXPECT_EQ(find_row(each.name), &each) << each.name;
  EXPECT_EQ(find_row("nothing"), nullptr);
}

TEST(rows, large_copies_are_as_large_as_memory_and_line_allow) {
  constexpr std::uint64_t plenty = 1ull << 40;
  EXPECT_EQ(choose_bulk(plenty, plenty, 10, 1), 64 * mebibyte);
  EXPECT_EQ(choose_bulk(100 * mebibyte, plenty, 10, 1), 16 * mebibyte);
  EXPECT_EQ(choose_bulk(plenty, 256 * mebibyte, 10, 1), 32 * mebibyte);
  // 0.1 GB/s: 33 MB in a third of a second.
  EXPECT_EQ(choose_bulk(plenty, plenty, 0.1, 1), 16 * mebibyte);
  EXPECT_EQ(choose_bulk(plenty, plenty, 1, 0.001), 2 * mebibyte);
  EXPECT_EQ(choose_bulk(0, 0, 10, 1), 2 * mebibyte);
  EXPECT_EQ(choose_bulk(plenty, plenty, 0.04, 100), 0u);
}

}  // namespace
}  // namespace outboard::bench
