#include "marshal/cuda/byte_masks.hh"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace outboard::marshal {
namespace {

using word_bytes = std::array<std::byte, word_size>;

TEST(ByteMasks, say_which_bytes_are_not_zero) {
  for (unsigned mask = 0; mask < 256; ++mask) {
    for (const unsigned value : {0x01u, 0x7fu, 0x80u, 0xffu}) {
      std::uint64_t word = 0, all = 0;
      for (int i = 0; i < 8; ++i) {
        if (mask >> i & 1) word |= std::uint64_t{value} << 8 * i, all |= std::uint64_t{0xff} << 8 * i;
      }
      EXPECT_EQ(nonzero_bytes(word), mask) << value;
      EXPECT_EQ(bytes_of(static_cast<std::uint8_t>(mask)), all);
    }
  }
}

TEST(ByteMasks, find_every_difference_of_every_length) {
  std::mt19937 random(1);
  for (std::size_t n = 0; n <= 64; ++n) {
    for (int round = 0; round < 50; ++round) {
      std::array<std::byte, 64> a, b;
      std::uint64_t expected = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        a[i] = static_cast<std::byte>(random());
        b[i] = random() % 3 ? a[i] : static_cast<std::byte>(random());
        if (i < n && a[i] != b[i]) expected |= std::uint64_t{1} << i;
      }
      EXPECT_EQ(different_bytes(a.data(), b.data(), n), expected);
    }
  }
}

TEST(ByteMasks, take_bytes_out_and_put_them_back) {
  const word_bytes word{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                        std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};
  for (unsigned m = 0; m < 256; ++m) {
    const auto mask = static_cast<std::uint8_t>(m);
    word_bytes taken{};
    ASSERT_EQ(take_bytes(word.data(), mask, taken.data()), static_cast<std::size_t>(std::popcount(m)));
    const std::byte* at = taken.data();
    EXPECT_EQ(put_bytes(at, mask), load_word(word.data()) & bytes_of(mask));
    EXPECT_EQ(at - taken.data(), std::popcount(m));
  }
}

}  // namespace
}  // namespace outboard::marshal
