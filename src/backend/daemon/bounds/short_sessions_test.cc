#include "backend/daemon/bounds/short_sessions.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;
const short_sessions::clock::time_point start{1000s};

TEST(short_sessions, costs_nothing_where_sessions_last) {
  short_sessions h;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(h.keeps_place("her", start, start + 1s), 0s);
}

TEST(short_sessions, costs_nothing_for_a_number_of_short_ones) {
  short_sessions h;
  for (int i = 0; i < short_sessions::free_at_once; ++i) EXPECT_EQ(h.keeps_place("her", start, start), 0s);
  // Later as many as come back in that time.
  for (int i = 0; i < 100; ++i) {
    const auto then = start + 10s + i * 250ms;
    EXPECT_EQ(h.keeps_place("her", then - 200ms, then), 0s) << i;
  }
}

TEST(short_sessions, keeps_the_places_of_many_short_ones_until_they_have_lasted) {
  short_sessions h;
  for (int i = 0; i < short_sessions::free_at_once; ++i) (void)h.keeps_place("her", start, start);
  EXPECT_EQ(h.keeps_place("her", start - 100ms, start), 900ms);
  EXPECT_EQ(h.keeps_place("her", start - 999ms, start), 1ms);
  EXPECT_EQ(h.keeps_place("him", start - 100ms, start), 0s) << "each identity has its own";
}

}  // namespace
}  // namespace outboard::backend
