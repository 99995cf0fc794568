#include "frontend/memory/page_gate.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>

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

class PageGateTest : public testing::Test {
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

TEST_F(PageGateTest, BothViewsAreTheSameMemory) {
  theirs(5) = 7;
  EXPECT_EQ(view_[5], std::byte{7});
  view_[page + 1] = std::byte{9};
  EXPECT_EQ(theirs(page + 1), 9);
}

TEST_F(PageGateTest, WhoTouchesAClosedPageSleepsUntilItIsOpened) {
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

TEST_F(PageGateTest, APartCanBeOpenedAlone) {
  ASSERT_TRUE(gate_.close(base, 64 * page));
  gate_.reopen(base + 16 * page, 16 * page);
  theirs(20 * page) = 3;
  EXPECT_EQ(view_[20 * page], std::byte{3});
  std::thread toucher([&] { theirs(40 * page) = 4; });
  EXPECT_TRUE(gate_.next_touch(10s));
  gate_.reopen(base, 64 * page);
  toucher.join();
}

TEST_F(PageGateTest, ClosingAgainTakesAwayWhatWasTouched) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(gate_.close(base, 64 * page));
    std::thread toucher([&] { theirs(3 * page) = static_cast<unsigned char>(theirs(3 * page) + 1); });
    ASSERT_TRUE(gate_.next_touch(10s));
    gate_.reopen(base, 64 * page);
    toucher.join();
  }
  EXPECT_EQ(view_[3 * page], std::byte{20});
}

/// They are woken while the pages are being opened, touch them again at once, and nobody wakes them twice.
TEST_F(PageGateTest, WhoTouchesPagesWhileTheyAreOpenedGoesOn) {
  constexpr int touchers = 2;
  std::array<std::atomic<std::uint64_t>, touchers> touches{};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (auto& mine : touches) {
    threads.emplace_back([&] {
      for (; !over; ++mine) std::atomic_ref(theirs(3 * page)).store(1, std::memory_order_relaxed);
    });
  }
  const auto all_went_on = [&](auto before) {
    for (const auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;) {
      int on = 0;
      for (int i = 0; i < touchers; ++i) on += touches[i] != before[i];
      if (on == touchers) return true;
      std::this_thread::yield();
    }
    return false;
  };
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    EXPECT_TRUE(gate_.close(base, 64 * page));
    std::this_thread::yield();
    gate_.reopen(base, 64 * page);
    while (gate_.next_touch(0ns)) {
    }
    EXPECT_TRUE(all_went_on(std::array{touches[0].load(), touches[1].load()})) << "a thread sleeps on";
  }
  over = true;
  if (HasFailure()) gate_ = page_gate();  // its end wakes all
  for (auto& thread : threads) thread.join();
}

TEST_F(PageGateTest, PatienceEndsAndWakingEndsIt) {
  EXPECT_FALSE(gate_.next_touch(1ms));
  gate_.wake();
  EXPECT_FALSE(gate_.next_touch(std::nullopt));
}

TEST_F(PageGateTest, WhatIsUnmappedAloneIsZeroWhenItComesBack) {
  theirs(7) = 7;
  gate_.unmap(base, 64 * page, view_, true);
  view_ = gate_.map(base, 64 * page);
  ASSERT_NE(view_, nullptr);
  EXPECT_EQ(theirs(7), 0);
}

}  // namespace
}  // namespace outboard::frontend
