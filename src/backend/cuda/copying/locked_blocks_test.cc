#include "backend/cuda/copying/locked_blocks.hh"

#include <gtest/gtest.h>

#include <thread>

namespace outboard::backend {
namespace {

/// A driver that counts, and refuses to be called inside a callback of its own.
struct counting {
  static inline std::uint64_t registered = 0, bytes = 0;
  static inline bool in_callback = false;
  static api::driver_table table() {
    registered = bytes = 0;
    in_callback = false;
    api::driver_table t;
    t.cuMemHostRegister_v2 = [](void*, std::size_t size, unsigned) {
      if (in_callback) return CUDA_ERROR_NOT_PERMITTED;
      return ++registered, bytes += size, CUDA_SUCCESS;
    };
    t.cuMemHostUnregister = [](void*) {
      if (in_callback) return CUDA_ERROR_NOT_PERMITTED;
      return --registered, CUDA_SUCCESS;
    };
    return t;
  }
};

TEST(LockedBlocksTest, WhatACallbackGivesBackIsTakenAgain) {
  const api::driver_table table = counting::table();
  locked_blocks blocks(table);
  const auto first = blocks.take(10'000, 1);
  ASSERT_NE(first.data, nullptr);
  EXPECT_TRUE(first.locked);
  EXPECT_GE(first.size, 10'000u);
  counting::in_callback = true;
  std::thread([&] { blocks.give_back(first); }).join();
  counting::in_callback = false;
  const auto again = blocks.take(9'000, 1);
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(counting::registered, 1u);
  const auto other = blocks.take(9'000, 1);
  EXPECT_NE(other.data, first.data);
  blocks.give_back(again);
  // Neither for a tiny one nor for another context.
  EXPECT_NE(blocks.take(100, 1).data, first.data);
  EXPECT_NE(blocks.take(9'000, 2).data, first.data);
}

TEST(LockedBlocksTest, KeepsNoMoreThanItsLimit) {
  const api::driver_table table = counting::table();
  locked_blocks blocks(table);
  constexpr std::uint64_t size = 32u << 20;
  std::vector<locked_blocks::block> held;
  for (int i = 0; i < 16; ++i) held.push_back(blocks.take(size, 1));
  EXPECT_EQ(blocks.bytes(), 16 * size);
  for (const auto& b : held) blocks.give_back(b);
  EXPECT_EQ(blocks.bytes(), 16 * size);  // a callback cannot let go
  const auto small = blocks.take(1, 1);
  EXPECT_EQ(blocks.bytes(), locked_blocks::most_kept + small.size);
  EXPECT_EQ(counting::registered, locked_blocks::most_kept / size + 1);
}

TEST(LockedBlocksTest, ADeadContextsBlocksAreNotUsedAgain) {
  const api::driver_table table = counting::table();
  locked_blocks blocks(table);
  const auto kept = blocks.take(4096, 1), used = blocks.take(8192, 1);
  blocks.give_back(kept);
  blocks.drop_context(1);
  blocks.give_back(used);
  const std::uint64_t before = counting::registered;
  const auto fresh = blocks.take(4096, 1);
  EXPECT_EQ(counting::registered, before + 1);
  EXPECT_EQ(blocks.bytes(), fresh.size);
}

TEST(LockedBlocksTest, WithoutThatCallOrAContextItIsOrdinaryMemory) {
  const api::driver_table none{};
  locked_blocks plain(none);
  EXPECT_FALSE(plain.take(4096, 1).locked);
  const api::driver_table table = counting::table();
  locked_blocks blocks(table);
  EXPECT_FALSE(blocks.take(4096, 0).locked);
  EXPECT_EQ(counting::registered, 0u);
  EXPECT_EQ(blocks.take(~0ull, 1).data, nullptr);
}

}  // namespace
}  // namespace outboard::backend
