#include "frontend/profile_summary.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t ms = 1'000'000;

api::work_record kernel(std::int64_t begin, std::int64_t took) {
  api::work_record w;
  w.begin = static_cast<std::uint64_t>(begin);
  w.end = static_cast<std::uint64_t>(begin + took);
  return w;
}

TEST(profile_summary, the_longest_comes_first_and_what_overlaps_counts_once_as_busy) {
  profile_summary s;
  s.add_work("small", kernel(0, ms), 0);
  s.add_work("large", kernel(ms / 2, 3 * ms), ms / 2);  // to 3.5
  s.add_work("small", kernel(9 * ms, 2 * ms), 9 * ms);  // to 11
  const std::string text = s.text({.took = 20 * ms, .sent = 1'500'000});
  EXPECT_THAT(text, HasSubstr("at work for 5.500 ms, 27.5 % of it; idle between for 5.500 ms"));
  EXPECT_THAT(text,
              HasSubstr(" 50.0       3.000         1    3000.00    3000.00    3000.00           large\n"));
  EXPECT_THAT(text,
              HasSubstr(" 50.0       3.000         2    1500.00    1000.00    2000.00           small\n"));
  EXPECT_THAT(text, HasSubstr("1.500 MB sent"));
  EXPECT_THAT(text, Not(HasSubstr("lost")));
}

TEST(profile_summary, copies_have_a_rate) {
  profile_summary s;
  api::work_record copy = kernel(0, ms);
  copy.kind = api::work_kind::copy;
  copy.bytes = 4'000'000;
  s.add_work("memcpy HtoD (pinned -> device)", copy, 0);
  EXPECT_THAT(s.text({}), HasSubstr("     4.00  memcpy HtoD (pinned -> device)\n"));
}

TEST(profile_summary, calls_by_how_they_were_answered_and_what_was_lost) {
  profile_summary s;
  s.add_call(answered::locally, 100);
  s.add_call(answered::posted, 100);
  s.add_call(answered::waited, 2 * ms);
  s.add_call(answered::waited, ms);
  const std::string text = s.text({.dropped = 7});
  EXPECT_THAT(text, HasSubstr("1 answered here, 1 sent without waiting, 2 waited for: 3.000 ms"));
  EXPECT_THAT(text, HasSubstr("no kernel and no copy was recorded"));
  EXPECT_THAT(text, HasSubstr("7 records were lost"));
}

TEST(profile_summary, many_names_end_in_one_line_and_long_ones_are_cut) {
  profile_summary s;
  for (int i = 0; i < 25; ++i)
    s.add_work("kernel_" + std::to_string(i) + std::string(100, 'x'), kernel(0, ms), 0);
  const std::string text = s.text({});
  EXPECT_THAT(text, HasSubstr("in 5 more"));
  EXPECT_THAT(text, HasSubstr("xxx...\n"));
}

TEST(profile_summary, hours_of_work_are_merged_on_the_way) {
  profile_summary s;
  for (std::int64_t i = 0; i < 200'000; ++i) s.add_work("k", kernel(2 * i * 1000, 1000), 2 * i * 1000);
  EXPECT_THAT(s.text({.took = 400 * ms}), HasSubstr("at work for 200.000 ms, 50.0 %"));
}

}  // namespace
}  // namespace outboard::frontend
