// The words of lines that are asked for by opcodes known at run time only: a byte a function, made when
// line_words.cc is compiled. (As a template in a header they cost each file that asked seconds: the compiler
// read every line of the tables for it.) Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "api/cuda/functions.hh"

namespace outboard::api {

/// A word of a function's line (describe.hh has what it means), as a bit.
enum class line_word : std::uint8_t {
  passes_frees = 1,
  sends_frees = 2,
  asks = 4,
  light = 8,
  no_work = 16,
  loads_code = 32,
  makes_graph = 64,
};

namespace detail {

/// Where the functions of a chapter stand in line_words.
struct chapter_place {
  std::uint16_t begin = 0, count = 0;
};
extern const std::array<chapter_place, 64> chapter_places;  ///< by the chapter's number
extern const std::uint8_t line_words[];                     ///< in opcode order

}  // namespace detail

/// Does the line of this function say the word? No for an opcode that there is not: it may be a peer's.
inline bool says(opcode code, line_word word) {
  const std::uint32_t chapter = static_cast<std::uint32_t>(code) / 1000;
  const std::uint32_t position = static_cast<std::uint32_t>(code) % 1000;
  if (chapter >= detail::chapter_places.size()) return false;
  const detail::chapter_place& place = detail::chapter_places[chapter];
  return position < place.count &&
         (detail::line_words[place.begin + position] & static_cast<std::uint8_t>(word)) != 0;
}

}  // namespace outboard::api
