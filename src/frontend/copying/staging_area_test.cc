#include "frontend/copying/staging_area.hh"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace outboard::frontend {
namespace {

class staging_area_test : public ::testing::Test {
 protected:
  staging_area_test() : memory_(staging_area::size) {
    area_.open(reinterpret_cast<std::uint64_t>(memory_.data()));
  }
  void device_is_done(std::uint64_t n) { *reinterpret_cast<std::uint32_t*>(area_.word(n)) = area_.value(n); }

  std::vector<std::byte> memory_;
  staging_area area_;
};

TEST_F(staging_area_test, BlocksLieApartBehindTheWords) {
  std::set<std::uint64_t> places, words;
  for (std::uint64_t n = 0; n < staging_area::blocks; ++n) {
    places.insert(area_.place(n));
    words.insert(area_.word(n));
    EXPECT_GE(area_.place(n), area_.base + staging_area::first_page);
    EXPECT_LE(area_.place(n) + staging_area::block_size, area_.base + staging_area::size);
    EXPECT_LT(area_.word(n), area_.base + staging_area::first_page);
  }
  EXPECT_EQ(places.size(), staging_area::blocks);
  EXPECT_EQ(words.size(), staging_area::blocks);
}

TEST_F(staging_area_test, ABlockIsFreeWhenTheDeviceIsDoneWithItsLastUse) {
  for (std::uint64_t n = 0; n < staging_area::blocks; ++n) EXPECT_TRUE(area_.is_free(n));
  EXPECT_FALSE(area_.is_free(staging_area::blocks));  // the first block's second use
  EXPECT_FALSE(area_.is_done(0));
  device_is_done(0);
  EXPECT_TRUE(area_.is_done(0));
  EXPECT_TRUE(area_.is_free(staging_area::blocks));
  EXPECT_FALSE(area_.is_free(staging_area::blocks + 1));
}

TEST_F(staging_area_test, TheNextCopyWaitsForTheLastOnesBlocks) {
  area_.end_copy(3);  // blocks 0 to 2, with which the device is not done
  for (std::uint64_t n = 0; n < staging_area::blocks - 3; ++n) EXPECT_TRUE(area_.is_free(n)) << n;
  for (std::uint64_t n = staging_area::blocks - 3; n < staging_area::blocks; ++n)
    EXPECT_FALSE(area_.is_free(n)) << n;
}

TEST_F(staging_area_test, ManyCopiesOfEverySize) {
  for (std::uint64_t copy = 0; copy < 500; ++copy) {
    const std::uint64_t count = 1 + copy * 7 % 50;
    for (std::uint64_t n = 0; n < count; ++n) {
      ASSERT_TRUE(area_.is_free(n)) << copy << " " << n;
      ASSERT_FALSE(area_.is_done(n)) << copy << " " << n;
      device_is_done(n);
      ASSERT_TRUE(area_.is_done(n));
    }
    area_.end_copy(count);
  }
}

}  // namespace
}  // namespace outboard::frontend
