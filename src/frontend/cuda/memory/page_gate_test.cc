#include "frontend/cuda/memory/page_gate.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/sanitizers.hh"

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t page = 4096, base = under_tsan ? 0x7e8a'0000'0000 : 0x208a'0000'0000;

volatile unsigned char& theirs(std::uint64_t offset) {
  return *reinterpret_cast<volatile unsigned char*>(base + offset);
}

class page_gate_test : public testing::Test {
 protected:
  void SetUp() override {
    if (!page_gate::possible()) GTEST_SKIP() << "this system lets nobody watch pages";
    ASSERT_TRUE(gate_.open());
    view_ = gate_.map(base, 64 * page);
    ASSERT_NE(view_, nullptr);
  }
  void TearDown() override { ::munmap(reinterpret_cast<void*>(base), 64 * page); }

  page_gate gate_;
  std::byte* view_ = nullptr;
};

TEST_F(page_gate_test, both_views_are_the_same_memory) {
  theirs(5) = 7;
  EXPECT_EQ(view_[5], std::byte{7});
  view_[page + 1] = std::byte{9};
  EXPECT_EQ(theirs(page + 1), 9);
}

TEST_F(page_gate_test, who_touches_a_closed_page_sleeps_until_it_is_opened) {
  theirs(0) = 1;                                              // a page that is there
  for (const std::uint64_t offset : {0 * page, 40 * page}) {  // and one that never was
    ASSERT_TRUE(gate_.close(base, 64 * page));
    std::atomic<bool> done{false};
    unsigned char seen = 0;
    std::thread toucher([&] {
      seen = theirs(offset);
      done = true;
    });
    const auto touched = gate_.next_touch(10s);
    ASSERT_TRUE(touched);
    EXPECT_EQ(*touched / page, (base + offset) / page);
    view_[offset] = std::byte{42};  // we reach it meanwhile
    EXPECT_FALSE(done);
    gate_.reopen(base, 64 * page);
    toucher.join();
    EXPECT_EQ(seen, 42);
  }
}

TEST_F(page_gate_test, a_part_can_be_opened_alone) {
  ASSERT_TRUE(gate_.close(base, 64 * page));
  gate_.reopen(base + 16 * page, 16 * page);
  theirs(20 * page) = 3;
  EXPECT_EQ(view_[20 * page], std::byte{3});
  std::thread toucher([&] { theirs(40 * page) = 4; });
  EXPECT_TRUE(gate_.next_touch(10s));
  gate_.reopen(base, 64 * page);
  toucher.join();
}

TEST_F(page_gate_test, closing_again_takes_away_what_was_touched) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(gate_.close(base, 64 * page));
    std::thread toucher([&] { theirs(3 * page) = static_cast<unsigned char>(theirs(3 * page) + 1); });
    ASSERT_TRUE(gate_.next_touch(10s));
    gate_.reopen(base, 64 * page);
    toucher.join();
  }
  EXPECT_EQ(view_[3 * page], std::byte{20});
}

// A thread in its fault while the pages are opened falls asleep after the system has woken the sleepers.
TEST_F(page_gate_test, no_touch_sleeps_through_an_opening) {
  std::atomic<bool> stop{false};
  std::array<std::atomic<std::uint64_t>, 4> rounds_of{};
  std::vector<std::thread> touchers;
  for (std::uint64_t t = 0; t < rounds_of.size(); ++t) {
    touchers.emplace_back([&, t] {
      for (; !stop; ++rounds_of[t]) {
        for (std::uint64_t i = 0; i < 64; ++i) theirs(i * page + t) = 1;
      }
    });
  }
  const auto goes_on = [&](std::atomic<std::uint64_t>& own) {
    const std::uint64_t before = own;
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (own == before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    return own != before;
  };
  bool all = true;
  const auto enough = std::chrono::steady_clock::now() + 2s;
  while (all && std::chrono::steady_clock::now() < enough) {
    ASSERT_TRUE(gate_.close(base, 64 * page));
    gate_.reopen(base, 64 * page);
    all = std::all_of(rounds_of.begin(), rounds_of.end(), goes_on);
  }
  EXPECT_TRUE(all) << "a thread sleeps though the pages are open";
  stop = true;
  ASSERT_TRUE(gate_.close(base, 64 * page));
  gate_.reopen(base, 64 * page);  // also wakes a thread that was forgotten
  for (std::thread& t : touchers) t.join();
}

TEST_F(page_gate_test, patience_ends_and_waking_ends_it) {
  EXPECT_FALSE(gate_.next_touch(1ms));
  gate_.wake();
  EXPECT_FALSE(gate_.next_touch(std::nullopt));
}

TEST_F(page_gate_test, what_is_unmapped_alone_is_zero_when_it_comes_back) {
  theirs(7) = 7;
  gate_.unmap(base, 64 * page, view_, true);
  view_ = gate_.map(base, 64 * page);
  ASSERT_NE(view_, nullptr);
  EXPECT_EQ(theirs(7), 0);
}

}  // namespace
}  // namespace outboard::frontend
