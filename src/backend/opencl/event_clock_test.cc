#include "backend/opencl/event_clock.hh"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace outboard::backend::opencl {
namespace {

/// A device whose clock is `offset` behind ours, and drifts.
struct clocks {
  std::int64_t offset;
  double drift = 0;
  std::uint64_t theirs(std::uint64_t ours) const {
    return ours - static_cast<std::uint64_t>(offset) +
           static_cast<std::uint64_t>(drift * static_cast<double>(ours));
  }
};

/// Commands whose calls take 5 to 50 us, for ten seconds: how far ours() is off at worst, once 100 are known.
std::int64_t worst_error(const clocks& c) {
  std::mt19937 random(7);
  event_clock clock;
  std::int64_t worst = 0;
  std::uint64_t now = 1'000'000'000;
  for (int n = 0; n < 10'000; ++n) {
    now += 1'000'000;
    const std::uint64_t took = 5000 + random() % 45'000;
    clock.note(c.theirs(now + random() % took), now, now + took);
    const auto off = static_cast<std::int64_t>(clock.ours(c.theirs(now)) - now);
    if (n >= 100) worst = std::max<std::int64_t>(worst, std::llabs(off));
  }
  return worst;
}

TEST(EventClock, many_commands_say_it_better_than_one) { EXPECT_LT(worst_error({123'456'789'012}), 5000); }

TEST(EventClock, follows_a_clock_that_drifts) { EXPECT_LT(worst_error({-5'000'000, 20e-6}), 10'000); }

TEST(EventClock, a_command_is_never_earlier_than_its_call_or_later_than_its_end) {
  const clocks c{-77'000};
  event_clock clock;
  std::uint64_t now = 1'000'000;
  for (std::uint64_t took : {40'000, 9000, 200'000, 3000, 1000}) {
    const std::uint64_t queued = c.theirs(now + took / 3);
    clock.note(queued, now, now + took);
    EXPECT_GE(clock.ours(queued), now);
    EXPECT_LE(clock.ours(queued), now + took);
    now += 1'000'000;
  }
}

TEST(EventClock, a_step_counts_at_once) {
  event_clock clock;
  clock.note(1000, 5000, 6000);
  clock.note(2000, 900'000'000, 900'001'000);
  EXPECT_NEAR(static_cast<double>(clock.ours(2000)), 900'000'500, 1);
}

}  // namespace
}  // namespace outboard::backend::opencl
