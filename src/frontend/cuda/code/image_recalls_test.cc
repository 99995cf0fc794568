#include "frontend/cuda/code/image_recalls.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;
using clock = image_recalls::clock;

constexpr std::size_t probe = 128u << 10, MiB = 1u << 20;
const clock::time_point start = clock::time_point{} + 1h;

/// As measured over a link of that bandwidth and round trip.
void over(image_recalls& r, double gigabits, clock::duration round_trip, clock::time_point now = start) {
  const auto sending = std::chrono::nanoseconds(static_cast<std::int64_t>(8 * probe / gigabits));
  r.measured(round_trip, probe, round_trip + sending, now);
}

TEST(image_recalls, knows_nothing_at_first_and_forgets) {
  image_recalls r({});
  EXPECT_FALSE(r.knows_link(start));
  EXPECT_FALSE(r.pays(MiB));
  over(r, 0.1, 1ms);
  EXPECT_TRUE(r.knows_link(start + 29s));
  EXPECT_FALSE(r.knows_link(start + 31s));
  over(r, 100, 1ms);
  EXPECT_TRUE(r.knows_link(start + 4s));
  EXPECT_FALSE(r.knows_link(start + 6s));
}

TEST(image_recalls, asks_over_slow_lines_only) {
  image_recalls r({});
  r.hashed(MiB, 1ms);
  over(r, 0.1, 1ms);
  EXPECT_TRUE(r.pays(MiB));
  over(r, 1, 1ms);
  EXPECT_TRUE(r.pays(4 * MiB));
  over(r, 10, 100us);
  EXPECT_FALSE(r.pays(4 * MiB));
  EXPECT_FALSE(r.pays(1024 * MiB));
}

TEST(image_recalls, a_slow_hash_on_either_end_counts) {
  image_recalls here({}), there({});
  for (image_recalls* r : {&here, &there}) over(*r, 1, 100us);
  here.hashed(MiB, 5ms);
  EXPECT_FALSE(here.pays(64 * MiB));
  there.hashed(MiB, 700us);
  EXPECT_TRUE(there.pays(64 * MiB));
  for (int i = 0; i < 50; ++i) there.found(64 * MiB, 400ms);
  EXPECT_FALSE(there.pays(64 * MiB));
  over(there, 1, 100us);  // perhaps it has more time by now
  EXPECT_TRUE(there.pays(64 * MiB));
}

TEST(image_recalls, one_interruption_changes_nothing) {
  image_recalls r({});
  over(r, 0.1, 1ms);
  r.hashed(MiB / 16, 50us);
  r.hashed(MiB / 16, 10ms);
  r.found(4 * MiB, 300ms);
  EXPECT_TRUE(r.pays(4 * MiB));
  image_recalls first({});
  over(first, 0.1, 1ms);
  first.hashed(MiB / 16, 10ms);
  first.hashed(MiB / 16, 50us);
  EXPECT_TRUE(first.pays(4 * MiB));
}

TEST(image_recalls, a_round_trip_must_be_worth_it) {
  image_recalls r({});
  over(r, 0.1, 50ms);
  EXPECT_FALSE(r.pays(256u << 10));
  EXPECT_TRUE(r.pays(4 * MiB));
}

TEST(image_recalls, a_line_that_seems_to_take_no_time_is_fast) {
  image_recalls r({});
  r.measured(3ms, probe, 1ms, start);
  EXPECT_TRUE(r.knows_link(start));
  EXPECT_FALSE(r.pays(1024 * MiB));
}

}  // namespace
}  // namespace outboard::frontend
