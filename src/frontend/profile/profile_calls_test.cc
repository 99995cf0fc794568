#include "frontend/profile/profile_calls.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace outboard::frontend {
namespace {

TEST(profile_calls, lanes_are_merged_by_time) {
  profile_calls calls;
  lane one, other;
  calls.note(one, "a", answered::posted, 10, 20);
  calls.note(one, "b", answered::waited, 30, 40);
  calls.note(other, "c", answered::locally, 25, 100);
  const auto all = calls.take();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[1].name, "c");
  EXPECT_EQ(all[2].name, "b");
  EXPECT_EQ(all[2].how, answered::waited);
  EXPECT_EQ(all[2].end, 40);
  EXPECT_TRUE(calls.take().empty());
}

TEST(profile_calls, what_a_lane_noted_before_it_ended_is_taken_and_then_its_list_is_gone) {
  profile_calls calls;
  lane ending, staying, silent;
  calls.note(ending, "a", answered::posted, 1, 2);
  calls.note(staying, "b", answered::posted, 3, 4);
  calls.end(ending);
  calls.end(silent);
  EXPECT_EQ(calls.lanes(), 2u);
  EXPECT_EQ(calls.take().size(), 2u);
  EXPECT_EQ(calls.lanes(), 1u);
  calls.note(staying, "c", answered::posted, 5, 6);
  EXPECT_EQ(calls.take().size(), 1u);
}

TEST(profile_calls, threads_that_come_and_go_while_another_takes) {
  constexpr int rounds = 20, threads = 4;
  constexpr std::int64_t each = 500;
  profile_calls calls;
  std::atomic<bool> over{false};
  std::map<std::int32_t, std::int64_t> next;  // by thread: its calls come once, and in their order
  std::int64_t seen = 0;
  const auto take = [&] {
    for (const profile_events::call& c : calls.take()) {
      EXPECT_EQ(next[c.thread]++ % each, c.begin);
      ++seen;
    }
  };
  std::thread taking([&] {
    while (!over) take();
  });
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> callers;
    for (int t = 0; t < threads; ++t)
      callers.emplace_back([&] {
        lane own;
        for (std::int64_t i = 0; i < each; ++i) calls.note(own, "call", answered::posted, i, i + 1);
        calls.end(own);
      });
    for (std::thread& c : callers) c.join();
  }
  over = true;
  taking.join();
  take();
  EXPECT_EQ(seen, rounds * threads * each);
  EXPECT_EQ(calls.lanes(), 0u);
}

}  // namespace
}  // namespace outboard::frontend
