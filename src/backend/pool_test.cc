#include "backend/pool.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

const pool::time start{};

TEST(pool, gives_an_idle_worker_once_and_only_to_its_key) {
  pool p({.per_key = 1});
  EXPECT_EQ(p.take("a", start), std::nullopt);
  EXPECT_TRUE(p.wants_one("a"));
  EXPECT_FALSE(p.wants_one("b")) << "nobody used it";
  p.add("a", 7);
  EXPECT_FALSE(p.wants_one("a"));
  EXPECT_EQ(p.take("b", start), std::nullopt);
  EXPECT_EQ(p.take("a", start), 7u);
  EXPECT_EQ(p.take("a", start), std::nullopt);
  EXPECT_EQ(p.counted().hits, 1u);
  EXPECT_EQ(p.counted().misses, 3u);
}

TEST(pool, drops_what_nobody_wanted_for_the_idle_time) {
  pool p({.per_key = 1, .most = 8, .idle = 60s});
  p.take("a", start);
  p.add("a", 1);
  p.take("b", start + 30s);
  p.add("b", 2);
  EXPECT_EQ(p.next_drop(), start + 60s);
  EXPECT_THAT(p.drop(start + 59s), ElementsAre());
  EXPECT_THAT(p.drop(start + 60s), ElementsAre(1));
  EXPECT_FALSE(p.wants_one("a"));
  EXPECT_THAT(p.drop(start + 90s), ElementsAre(2));
  EXPECT_EQ(p.next_drop(), std::nullopt);
}

TEST(pool, drops_the_longest_unwanted_above_the_limit_of_all_keys) {
  pool p({.per_key = 1, .most = 2, .idle = 600s});
  for (int i = 0; i < 3; ++i) {
    p.take(std::to_string(i), start + i * 1s);
    p.add(std::to_string(i), static_cast<pool::worker_id>(i + 1));
  }
  EXPECT_THAT(p.drop(start + 5s), ElementsAre(1));
  EXPECT_EQ(p.size(), 2u);
}

TEST(pool, forgets_workers_that_ended_by_themselves) {
  pool p({.per_key = 2});
  p.take("a", start);
  p.add("a", 1);
  p.add("a", 2);
  p.remove(1);
  EXPECT_EQ(p.take("a", start), 2u);
}

TEST(pool, remembers_no_keys_when_it_is_off) {
  pool p({.per_key = 0});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(p.take(std::to_string(i), start), std::nullopt);
  EXPECT_EQ(p.next_drop(), std::nullopt);
  EXPECT_FALSE(p.wants_one("1"));
}

}  // namespace
}  // namespace outboard::backend
