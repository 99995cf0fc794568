// Which bytes of words differ, as masks of bits, and bytes named by such masks taken out of words and put
// into them: what a list of changes is made of, eight bytes at a time. Bit i stands for the byte at address i
// (both of our machines are little-endian). Values; any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace outboard::marshal {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::size_t word_size = sizeof(std::uint64_t);

namespace byte_masks {
inline constexpr std::uint64_t ones = 0x0101'0101'0101'0101, low_bits = 0x7f * ones;

/// The lowest bit of each byte that is not zero.
constexpr std::uint64_t not_zero(std::uint64_t word) {
  return ((((word & low_bits) + low_bits) | word) & ~low_bits) >> 7;
}
}  // namespace byte_masks

/// Bit i: byte i of the word is not zero.
constexpr std::uint8_t nonzero_bytes(std::uint64_t word) {
  // Multiplying moves the lowest bit of byte i to bit 56 + i, and nothing else there.
  return static_cast<std::uint8_t>(byte_masks::not_zero(word) * 0x0102'0408'1020'4080 >> 56);
}

/// What a mask of many bytes names lies in one aligned word.
constexpr bool is_one_word(std::uint64_t mask) {
  const int first = std::countr_zero(mask) / 8 * 8;
  return mask && mask >> first <= 0xff;
}

/// Byte i is all ones where bit i is set, else zero.
constexpr std::uint64_t bytes_of(std::uint8_t mask) {
  return byte_masks::not_zero(mask * byte_masks::ones & 0x8040'2010'0804'0201) * 0xff;
}

inline std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// Where `n` bytes differ, 64 at most.
inline std::uint64_t different_bytes(const std::byte* a, const std::byte* b, std::size_t n) {
  std::uint64_t mask = 0;
  std::size_t at = 0;
  for (; at + word_size <= n; at += word_size)
    mask |= std::uint64_t{nonzero_bytes(load_word(a + at) ^ load_word(b + at))} << at;
  for (; at < n; ++at) mask |= std::uint64_t{a[at] != b[at]} << at;
  return mask;
}

/// Writes the bytes that the mask names one behind the other, and returns how many.
inline std::size_t take_bytes(const std::byte* word, std::uint8_t mask, std::byte* to) {
  if (mask == 0xff) return std::copy_n(word, word_size, to), word_size;
  std::size_t n = 0;
  for (unsigned rest = mask; rest; rest &= rest - 1) to[n++] = word[std::countr_zero(rest)];
  return n;
}

/// The word with these bytes at their places, the others zero. Reads as many as the mask names, and goes on
/// behind them.
inline std::uint64_t put_bytes(const std::byte*& from, std::uint8_t mask) {
  std::uint64_t word = 0;
  if (mask == 0xff) {
    word = load_word(from);
    from += word_size;
    return word;
  }
  for (unsigned rest = mask; rest; rest &= rest - 1)
    word |= std::to_integer<std::uint64_t>(*from++) << 8 * std::countr_zero(rest);
  return word;
}

}  // namespace outboard::marshal
