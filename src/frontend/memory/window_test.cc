#include "frontend/memory/window.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace outboard::frontend {
namespace {

// Below where Linux loads executables, in the part that TSan leaves to programs too.
constexpr std::uint64_t page = 4096, quiet = 0x5510'0000'0000;

TEST(slot_addresses, gives_the_first_hole_that_fits_and_merges_what_comes_back) {
  slot_addresses slot(window_granule, 4 * window_granule);
  const std::uint64_t a = slot.take(window_granule), b = slot.take(window_granule),
                      c = slot.take(2 * window_granule);
  EXPECT_EQ(a, window_granule);
  EXPECT_EQ(b, 2 * window_granule);
  EXPECT_EQ(c, 3 * window_granule);
  EXPECT_EQ(slot.take(window_granule), 0u);
  slot.give_back(a, window_granule);
  EXPECT_EQ(slot.take(2 * window_granule), 0u);
  slot.give_back(b, window_granule);
  EXPECT_EQ(slot.take(2 * window_granule), a);
}

TEST(slot_addresses, honours_alignment_and_wishes_and_keeps_what_it_skips) {
  slot_addresses slot(window_granule, 15 * window_granule);
  EXPECT_EQ(slot.take(window_granule, 8 * window_granule), 8 * window_granule);
  EXPECT_FALSE(slot.take_at(7 * window_granule, 2 * window_granule));
  EXPECT_TRUE(slot.take_at(6 * window_granule, 2 * window_granule));
  EXPECT_FALSE(slot.take_at(20 * window_granule, window_granule));
  EXPECT_EQ(slot.take(5 * window_granule), window_granule);
  EXPECT_EQ(slot.take(7 * window_granule), 9 * window_granule);
  EXPECT_EQ(slot.take(window_granule), 0u);
}

TEST(claimed_range, refuses_what_is_in_use_and_gives_back_what_it_took) {
  {
    auto first = claimed_range::claim(quiet, 16 * page);
    ASSERT_TRUE(first.has_value());
    EXPECT_FALSE(claimed_range::claim(quiet + 8 * page, 16 * page).has_value());
  }
  EXPECT_TRUE(claimed_range::claim(quiet, 16 * page).has_value());
}

TEST(foreign_claims, overlapping_claims_of_ours_are_one_and_a_programs_memory_is_an_error) {
  foreign_claims claims;
  EXPECT_TRUE(claims.claim(quiet + 100, 10));
  EXPECT_TRUE(claims.claim(quiet + 100, 3 * page));
  EXPECT_TRUE(claims.claim(quiet + 8 * page, page));
  EXPECT_TRUE(claims.claim(quiet, 10 * page));
  void* own =
      ::mmap(reinterpret_cast<void*>(quiet + 20 * page), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(own, reinterpret_cast<void*>(quiet + 20 * page));
  EXPECT_FALSE(claims.claim(quiet + 19 * page, 3 * page));
  EXPECT_TRUE(claims.claim(quiet + 19 * page, page));
  ::munmap(own, page);
}

}  // namespace
}  // namespace outboard::frontend
