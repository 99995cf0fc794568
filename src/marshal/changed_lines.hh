// The work on each changed line of 64 bytes: which bytes differ, their taking out and putting back. By
// AVX-512 where the processor has what it takes (VBMI2: some ns a line), else eight bytes at a time
// (byte_masks.hh). Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "marshal/late_words.hh"

namespace outboard::marshal {

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

/// Everywhere.
extern const line_work work_by_words;
/// The best that this processor has.
const line_work& best_line_work();

}  // namespace outboard::marshal
