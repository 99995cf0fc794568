#include "backend/daemon/workers/pool.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

const pool::time start{};

TEST(pool, gives_an_idle_worker_once_and_only_to_its_key) {
  pool p({.per_key = 1});
  EXPECT_EQ(p.take("a", "us", start), std::nullopt);
  EXPECT_EQ(p.wants("a", start), 1u);
  EXPECT_EQ(p.wants("b", start), 0u) << "nobody used it";
  p.add("a", 7);
  EXPECT_EQ(p.wants("a", start), 0u);
  EXPECT_EQ(p.take("b", "us", start), std::nullopt);
  EXPECT_EQ(p.take("a", "us", start), 7u);
  EXPECT_EQ(p.take("a", "us", start), std::nullopt);
  EXPECT_EQ(p.counted().hits, 1u);
  EXPECT_EQ(p.counted().misses, 3u);
}

TEST(pool, drops_what_nobody_wanted_for_the_idle_time) {
  pool p({.per_key = 1, .most = 8, .idle = 60s});
  p.take("a", "us", start);
  p.add("a", 1);
  p.take("b", "us", start + 30s);
  p.add("b", 2);
  EXPECT_EQ(p.next_drop(), start + 60s);
  EXPECT_THAT(p.drop(start + 59s), ElementsAre());
  EXPECT_THAT(p.drop(start + 60s), ElementsAre(1));
  EXPECT_EQ(p.wants("a", start + 60s), 0u);
  EXPECT_THAT(p.drop(start + 90s), ElementsAre(2));
  EXPECT_EQ(p.next_drop(), std::nullopt);
}

TEST(pool, drops_the_longest_unwanted_above_the_limit_of_all_keys) {
  pool p({.per_key = 1, .most = 2, .idle = 600s});
  for (int i = 0; i < 3; ++i) {
    p.take(std::to_string(i), "us", start + i * 1s);
    p.add(std::to_string(i), static_cast<pool::worker_id>(i + 1));
  }
  EXPECT_THAT(p.drop(start + 5s), ElementsAre(1));
  EXPECT_EQ(p.size(), 2u);
}

TEST(pool, forgets_workers_that_ended_by_themselves) {
  pool p({.per_key = 2});
  p.take("a", "us", start);
  p.add("a", 1);
  p.add("a", 2);
  p.remove(1);
  EXPECT_EQ(p.take("a", "us", start), 2u);
}

TEST(pool, keeps_more_while_sessions_come_fast) {
  pool p({.per_key = 1, .burst = 3, .most = 8, .idle = 600s});
  for (int i = 0; i < 5; ++i) p.take("a", "us", start + i * 1s);
  EXPECT_EQ(p.wants("a", start + 4s), 3u) << "no more than the limit of a burst";
  for (pool::worker_id id : {1, 2, 3}) p.add("a", id);
  EXPECT_EQ(p.wants("a", start + 4s), 0u);
  EXPECT_THAT(p.drop(start + 31s), ElementsAre());
  // The sessions that count began at 2, 3 and 4 s.
  EXPECT_EQ(p.next_drop(), start + 32s);
  EXPECT_THAT(p.drop(start + 32s), ElementsAre(3));
  EXPECT_EQ(p.next_drop(), start + 33s);
  EXPECT_THAT(p.drop(start + 33s), ElementsAre(2));
  EXPECT_EQ(p.next_drop(), start + 604s);
  EXPECT_EQ(p.take("a", "us", start + 40s), 1u);
  EXPECT_EQ(p.wants("a", start + 40s), 1u) << "one session is no burst";
}

TEST(pool, a_burst_takes_nothing_from_other_keys) {
  pool p({.per_key = 1, .burst = 6, .most = 4, .idle = 600s});
  for (const char* key : {"b", "c"}) {
    p.take(key, "us", start);
    p.add(key, static_cast<pool::worker_id>(key[0]));
  }
  for (int i = 0; i < 6; ++i) p.take("a", "us", start + 1s);
  EXPECT_EQ(p.wants("a", start + 1s), 2u);
  p.add("a", 1);
  p.add("a", 2);
  EXPECT_EQ(p.wants("a", start + 1s), 0u);
  EXPECT_THAT(p.drop(start + 1s), ElementsAre());
}

TEST(pool, who_has_many_keys_turns_out_nobody_elses_workers) {
  pool p({.per_key = 1, .most = 3, .idle = 600s});
  p.take("hers", "her", start);
  p.add("hers", 1);
  p.take("all", "her", start);
  p.take("all", "him", start);
  p.add("all", 2);
  for (int i = 0; i < 100; ++i) {
    p.take("his " + std::to_string(i), "him", start + 1s * (i + 1));
    p.add("his " + std::to_string(i), static_cast<pool::worker_id>(i + 10));
    const auto dropped = p.drop(start + 1s * (i + 1));
    EXPECT_EQ(dropped, i == 0 ? std::vector<pool::worker_id>{} : std::vector<pool::worker_id>{i + 9ull});
  }
  EXPECT_EQ(p.take("hers", "her", start + 101s), 1u);
  EXPECT_EQ(p.take("all", "her", start + 101s), 2u);
}

TEST(pool, remembers_the_keys_of_others_among_ever_new_ones) {
  pool p({.per_key = 1, .most = 8, .idle = 600s});
  p.take("hers", "her", start);
  for (int i = 0; i < 200; ++i) p.take("his " + std::to_string(i), "him", start + 1s);
  (void)p.drop(start + 1s);
  EXPECT_EQ(p.wants("hers", start + 1s), 1u);
}

TEST(pool, remembers_no_keys_when_it_is_off) {
  pool p({.per_key = 0});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(p.take(std::to_string(i), "us", start), std::nullopt);
  EXPECT_EQ(p.next_drop(), std::nullopt);
  EXPECT_EQ(p.wants("1", start), 0u);
}

}  // namespace
}  // namespace outboard::backend
