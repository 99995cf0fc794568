#include "marshal/cuda/changed_lines.hh"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

namespace outboard::marshal {
namespace {

using line = std::array<std::byte, change_line>;

line random_line(std::mt19937& random) {
  line l;
  for (std::byte& b : l) b = static_cast<std::byte>(random());
  return l;
}

std::uint64_t random_mask(std::mt19937& random, int round) {
  const std::uint64_t any = std::uint64_t{random()} << 32 | random();
  const std::uint64_t masks[] = {0, ~0ull, any, any & std::uint64_t{random()} << round,
                                 0x1111'1111'1111'1111};
  return masks[round % std::size(masks)];
}

/// Each way against a byte at a time.
TEST(ChangedLines, every_way_does_the_same) {
  for (const line_work* work : line_works()) {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
      const std::uint64_t mask = random_mask(random, round % 32);
      const line here = random_line(random), there = random_line(random);
      line changed = there;
      std::array<std::byte, 2 * change_line> taken{};
      std::vector<std::byte> expected;
      for (std::size_t i = 0; i < change_line; ++i) {
        if (!(mask >> i & 1)) continue;
        changed[i] = there[i] ^ std::byte{static_cast<unsigned char>(1 + round % 255)};
        expected.push_back(here[i]);
      }
      line copy{};
      EXPECT_EQ(work->read(changed.data(), there.data(), copy.data()), mask) << work->name;
      EXPECT_EQ(copy, changed);
      ASSERT_EQ(work->take(here.data(), mask, taken.data()), expected.size()) << work->name;
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), taken.begin())) << work->name;
      // From memory that ends behind them: ASan sees what reads on.
      const std::vector<std::byte> exact(expected.begin(), expected.end());
      line put{};
      if (!exact.empty()) work->put(exact.data(), mask, put.data());
      line stored = there;
      work->store(here.data(), mask, stored.data());
      for (std::size_t i = 0; i < change_line; ++i) {
        const bool named = mask >> i & 1;
        EXPECT_EQ(put[i], named ? here[i] : std::byte{0}) << work->name << ' ' << i;
        EXPECT_EQ(stored[i], named ? here[i] : there[i]) << work->name << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace outboard::marshal
