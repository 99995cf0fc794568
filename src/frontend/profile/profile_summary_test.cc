#include "frontend/profile/profile_summary.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t ms = 1'000'000;

api::work_record kernel(std::int64_t begin, std::int64_t took, std::uint32_t name = 0) {
  api::work_record w;
  w.name = name;
  w.begin = static_cast<std::uint64_t>(begin);
  w.end = static_cast<std::uint64_t>(begin + took);
  return w;
}

TEST(profile_summary, the_longest_comes_first_and_what_overlaps_counts_once_as_busy) {
  profile_summary s;
  const std::vector<std::string> names{"small", "large"};
  s.add_work(kernel(0, ms, 0), 0);
  s.add_work(kernel(ms / 2, 3 * ms, 1), ms / 2);  // to 3.5
  s.add_work(kernel(9 * ms, 2 * ms, 0), 9 * ms);  // to 11
  const std::string text = s.text({.took = 20 * ms, .sent = 1'500'000}, names);
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
  copy.from = api::memory_side::pinned;
  copy.to = api::memory_side::device;
  copy.bytes = 4'000'000;
  api::work_record fill = copy;
  fill.kind = api::work_kind::fill;
  fill.bytes = 2'000'000;
  for (const api::work_record& w : {copy, fill, copy}) s.add_work(w, 0);
  EXPECT_THAT(s.text({}), HasSubstr("         2    1000.00    1000.00    1000.00     4.00  "
                                    "memcpy HtoD (pinned -> device)\n"));
  EXPECT_THAT(s.text({}),
              HasSubstr("         1    1000.00    1000.00    1000.00     2.00  memset (device)\n"));
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
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < 25; ++i) {
    names.push_back("kernel_" + std::to_string(i) + std::string(100, 'x'));
    s.add_work(kernel(0, ms, i), 0);
  }
  const std::string text = s.text({}, names);
  EXPECT_THAT(text, HasSubstr("in 5 more"));
  EXPECT_THAT(text, HasSubstr("xxx...\n"));
}

TEST(profile_summary, a_kernel_whose_name_never_came) {
  profile_summary s;
  s.add_work(kernel(0, ms, api::work_record::no_name), 0);
  EXPECT_THAT(s.text({}), HasSubstr("unknown kernel\n"));
}

TEST(profile_summary, hours_of_work_are_merged_on_the_way) {
  profile_summary s;
  for (std::int64_t i = 0; i < 200'000; ++i) s.add_work(kernel(2 * i * 1000, 1000), 2 * i * 1000);
  EXPECT_THAT(s.text({.took = 400 * ms}), HasSubstr("at work for 200.000 ms, 50.0 %"));
}

}  // namespace
}  // namespace outboard::frontend
