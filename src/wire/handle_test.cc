#include "wire/handle.hh"

#include <gtest/gtest.h>

namespace outboard::wire {
namespace {

TEST(handle, gives_back_its_parts) {
  for (const std::uint32_t index : {0u, 1u, 12345u, handle::max_index}) {
    for (const std::uint32_t generation : {1u, 77u, handle::max_generation}) {
      for (const std::uint8_t kind : {1, 9, 127}) {
        for (const bool minted : {false, true}) {
          const handle h = handle::make(kind, index, generation, minted);
          EXPECT_EQ(h.index(), index);
          EXPECT_EQ(h.generation(), generation);
          EXPECT_EQ(h.kind(), kind);
          EXPECT_EQ(h.minted(), minted);
          EXPECT_TRUE(h.well_formed());
          EXPECT_TRUE(h);
        }
      }
    }
  }
}

/// 0 is null, 1 and 2 are the default streams, and all-ones is "invalid" in many APIs. x86's canonical
/// addresses end below bit 47, so a program that dereferences a handle faults at once.
TEST(handle, looks_like_nothing_else) {
  for (const std::uint8_t kind : {1, 127}) {
    for (const std::uint32_t index : {0u, handle::max_index}) {
      for (const std::uint32_t generation : {1u, handle::max_generation}) {
        const std::uint64_t value = handle::make(kind, index, generation).value;
        EXPECT_GT(value, 2u);
        EXPECT_NE(value, ~0ull);
        EXPECT_EQ(value & 0xf, 0u);
        EXPECT_GE(value, 1ull << 47);
        EXPECT_EQ(value >> 60, 0u);
      }
    }
  }
}

TEST(handle, what_nobody_made_is_not_well_formed) {
  for (const std::uint64_t value : {0ull, 1ull, 2ull, ~0ull, 0x7fff12345670ull}) {
    EXPECT_FALSE(handle{value}.well_formed()) << value;
  }
  const handle good = handle::make(3, 7, 9);
  for (int bit = 0; bit < 64; ++bit) {
    const handle flipped{good.value ^ (1ull << bit)};
    const bool reserved = bit < 4 || bit >= 60;
    EXPECT_EQ(flipped.well_formed(), !reserved && flipped.kind() != 0 && flipped.generation() != 0) << bit;
    EXPECT_NE(flipped, good);
  }
}

TEST(handle, parts_too_large_do_not_spill_into_others) {
  const handle h = handle::make(0xff, ~0u, ~0u);
  EXPECT_EQ(h.kind(), 127);
  EXPECT_EQ(h.index(), handle::max_index);
  EXPECT_EQ(h.generation(), handle::max_generation);
  EXPECT_FALSE(h.minted());
  EXPECT_TRUE(h.well_formed());
}

}  // namespace
}  // namespace outboard::wire
