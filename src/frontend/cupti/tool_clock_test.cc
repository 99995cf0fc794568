#include "frontend/cupti/tool_clock.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cupti {
namespace {

TEST(tool_clock, moves_evenly_between_two_looks) {
  tool_clock clock;
  clock.look(1000, 11000);  // 10,000 ahead
  clock.look(2000, 12100);  // 10,100 ahead
  EXPECT_EQ(clock.of(500), 10500u);
  EXPECT_EQ(clock.of(1000), 11000u);
  EXPECT_EQ(clock.of(1500), 11550u);
  EXPECT_EQ(clock.of(2000), 12100u);
  EXPECT_EQ(clock.of(3000), 13100u);
}

TEST(tool_clock, a_look_that_took_long_is_not_believed) {
  tool_clock clock;
  clock.use([]() -> std::uint64_t {
    static int calls = 0;
    const std::int64_t now = steady_nanoseconds();
    if (calls++ == 0) {  // the first look loses its processor behind the tool's clock
      while (steady_nanoseconds() < now + 20'000'000) {
      }
    }
    return static_cast<std::uint64_t>(now) + 1'000'000'000'000;
  });
  clock.look();
  const std::int64_t now = steady_nanoseconds();
  EXPECT_NEAR(static_cast<double>(clock.of(now)) - static_cast<double>(now), 1e12, 5e6);
}

TEST(tool_clock, is_the_program_s_own_where_it_gave_one) {
  tool_clock clock;
  clock.look(1000, 2000);
  clock.use([]() -> std::uint64_t { return 77; });
  EXPECT_EQ(clock.now(), 77u);
  clock.look();
  EXPECT_EQ(clock.of(steady_nanoseconds()) / 1'000'000'000, 0u);
}

}  // namespace
}  // namespace outboard::frontend::cupti
