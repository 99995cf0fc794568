#include "frontend/lane.hh"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

namespace outboard::frontend {
namespace {

std::atomic<int> ended{0};
std::atomic<std::uint32_t> late{0};

TEST(lane, a_call_after_its_end_gets_another_one_that_ends_too) {
  on_lane_end([](lane&) { ++ended; });
  // Makes the lanes' key, which is older than the next: its destructor comes first.
  std::uint32_t first = this_lane().id;
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, [](void*) { late = this_lane().id; }), 0);
  std::thread([&] {
    first = this_lane().id;
    pthread_setspecific(key, &key);
  }).join();
  on_lane_end(nullptr);
  pthread_key_delete(key);
  EXPECT_NE(late, 0u);
  EXPECT_NE(late, first);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace outboard::frontend
