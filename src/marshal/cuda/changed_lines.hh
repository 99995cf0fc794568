// The work on each changed line of 64 bytes: which bytes differ, their taking out and putting back. By
// AVX-512 where the processor has what it takes (VBMI2: some ns a line), else by AVX2 and BMI2, else eight
// bytes at a time (byte_masks.hh). Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace outboard::marshal {

inline constexpr std::size_t change_line = 64;

/// A line read once, so that what is compared, sent and kept in the shadow is the same. The last of a block
/// may be shorter; bit i of `mask`: byte i has changed.
struct changed_line {
  std::array<std::byte, change_line> bytes{};
  std::size_t size = 0;
  std::uint64_t mask = 0;
};

/// One way to do it. Lines are whole: 64 bytes may be read and written.
struct line_work {
  const char* name;
  /// Copies a line and says which of its bytes differ from the shadow's.
  std::uint64_t (*read)(const std::byte* memory, const std::byte* shadow, std::byte* to);
  /// Writes the bytes that the mask names one behind the other; up to 64 bytes behind `to` are written.
  std::size_t (*take)(const std::byte* line, std::uint64_t mask, std::byte* to);
  /// Puts them at their places in a line, whose other bytes become zero. Reads no more than the mask names.
  void (*put)(const std::byte* from, std::uint64_t mask, std::byte* line);
  /// The bytes of a line that the mask names, by plain stores: others may be written with what they were.
  void (*store)(const std::byte* line, std::uint64_t mask, std::byte* to);
};

/// All that this processor can do, the best last.
std::vector<const line_work*> line_works();
/// The best that this processor has.
const line_work& best_line_work();

}  // namespace outboard::marshal
