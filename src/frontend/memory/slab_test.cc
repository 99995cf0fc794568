#include "frontend/memory/slab.hh"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace outboard::frontend {
namespace {

constexpr std::uint64_t granule = 2u << 20;

TEST(slab_allocator, needs_a_granule_first) {
  slab_allocator slabs;
  EXPECT_EQ(slabs.take(1), 0u);
  slabs.add_granule(granule, granule);
  EXPECT_EQ(slabs.take(1), granule);
  EXPECT_EQ(slabs.take(1), granule + small_alignment);
}

TEST(slab_allocator, never_gives_a_hole_that_crosses_granules) {
  slab_allocator slabs;
  slabs.add_granule(granule, granule);
  slabs.add_granule(2 * granule, granule);
  const std::uint64_t a = slabs.take(granule), b = slabs.take(granule);
  EXPECT_EQ(slabs.give_back(b, granule), b);  // empty and not the last: the caller unmaps it
  slabs.give_back(a, granule);
  EXPECT_EQ(slabs.take(granule + 1), 0u);
}

TEST(slab_allocator, blocks_never_overlap_through_ten_thousand_random_steps) {
  slab_allocator slabs;
  std::mt19937 random(7);
  std::map<std::uint64_t, std::uint64_t> held;
  std::uint64_t next_granule = granule;
  for (int step = 0; step < 10000; ++step) {
    if (held.size() < 200 && random() % 2) {
      const std::uint64_t size = 1 + random() % 40000;
      std::uint64_t at = slabs.take(size);
      if (!at) {
        slabs.add_granule(next_granule, granule);
        next_granule += 2 * granule;
        at = slabs.take(size);
      }
      ASSERT_NE(at, 0u);
      EXPECT_EQ(at % small_alignment, 0u);
      const auto after = held.lower_bound(at);
      ASSERT_TRUE(after == held.end() || at + size <= after->first);
      ASSERT_TRUE(after == held.begin() || std::prev(after)->first + std::prev(after)->second <= at);
      held[at] = size;
    } else if (!held.empty()) {
      const auto victim = std::next(held.begin(), random() % held.size());
      slabs.give_back(victim->first, victim->second);
      held.erase(victim);
    }
  }
}

}  // namespace
}  // namespace outboard::frontend
