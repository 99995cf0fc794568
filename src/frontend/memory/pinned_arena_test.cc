#include "frontend/memory/pinned_arena.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

constexpr std::uint64_t base = 0x2080'0000'0000, small = 64u << 10;

struct PinnedArena : testing::Test {
  PinnedArena() { arena.open(base, 1u << 20, small); }
  CUresult take(std::uint64_t size, std::uint64_t& address) {
    return arena.allocate(
        size, [&](pinned_chunk&) { return ++chunks, refuse; }, address);
  }
  void give(std::uint64_t address, std::uint64_t size) {
    arena.release(address, size, [&](const pinned_chunk&) { --chunks; });
  }
  pinned_arena arena;
  int chunks = 0;
  CUresult refuse = CUDA_SUCCESS;
};

TEST_F(PinnedArena, small_blocks_share_a_chunk_and_large_ones_do_not) {
  std::uint64_t a = 0, b = 0, c = 0;
  ASSERT_EQ(take(4, a), CUDA_SUCCESS);
  ASSERT_EQ(take(100, b), CUDA_SUCCESS);
  EXPECT_EQ(chunks, 1);
  ASSERT_EQ(take(100000, c), CUDA_SUCCESS);
  EXPECT_EQ(chunks, 2);
  EXPECT_EQ(arena.chunk_of(b)->base, arena.chunk_of(a)->base);
  EXPECT_EQ(arena.chunk_of(c + 99999)->size, 2 * small);
  EXPECT_TRUE(arena.holds(c));
  EXPECT_FALSE(arena.holds(base + (1u << 20)));
  give(c, 100000);
  EXPECT_EQ(chunks, 1);
  EXPECT_FALSE(arena.chunk_of(c));
}

TEST_F(PinnedArena, no_address_is_a_pair_of_small_integers) {
  pinned_arena large;
  large.open(base, 1ull << 40, small);
  for (int n = 0; n < 64; ++n) {
    std::uint64_t address = 0;
    ASSERT_EQ(large.allocate(
                  1u << 20, [](pinned_chunk&) { return CUDA_SUCCESS; }, address),
              CUDA_SUCCESS);
    EXPECT_GT(address & 0xffff'ffff, 2'000'000'000u);
    EXPECT_TRUE(large.holds(address));
  }
}

TEST_F(PinnedArena, is_full_when_its_addresses_are_and_whole_again_afterwards) {
  std::vector<std::uint64_t> all;
  std::uint64_t address = 0;
  while (take(60000, address) == CUDA_SUCCESS) all.push_back(address);
  EXPECT_EQ(all.size(), 16u);
  for (const std::uint64_t a : all) give(a, 60000);
  EXPECT_EQ(take(1u << 20, address), CUDA_SUCCESS);
}

TEST_F(PinnedArena, a_chunk_that_cannot_be_backed_leaves_nothing_behind) {
  std::uint64_t address = 0;
  refuse = CUDA_ERROR_MAP_FAILED;
  EXPECT_EQ(take(1u << 20, address), CUDA_ERROR_MAP_FAILED);
  EXPECT_EQ(take(8, address), CUDA_ERROR_MAP_FAILED);
  refuse = CUDA_SUCCESS;
  EXPECT_EQ(take(1u << 20, address), CUDA_SUCCESS);
}

TEST(PinnedArenaClosed, gives_nothing) {
  pinned_arena closed;
  std::uint64_t address = 0;
  EXPECT_EQ(closed.allocate(
                8, [](pinned_chunk&) { return CUDA_SUCCESS; }, address),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(closed.holds(0));
}

}  // namespace
}  // namespace outboard::frontend
