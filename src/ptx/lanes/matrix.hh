// Matrix fragments: which element of a matrix each lane's registers hold. Plain structs shared by decode
// (which makes the tables), the lane loops (which multiply) and the plain steps (which load and store).
// Immutable after decode.
#pragma once

#include <cstdint>

namespace outboard::ptx {

enum class cell : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, f32, f64, s8, u8, s4, u4, b1, s32, count };

struct fragment {
  cell kind = cell::f16;
  std::uint32_t rows = 0, columns = 0;  ///< of one problem
  std::uint32_t registers = 0;
  std::uint32_t distinct = 0;  ///< of these: wmma's fragments of halves may hold everything twice
  std::uint32_t cells = 1;     ///< in one register, lowest bits first
  std::uint32_t r[8] = {};
  const std::uint16_t* position =
      nullptr;  ///< [(register * cells + cell) * 32 + lane]: row * columns + column
};

enum class product : std::uint8_t { multiply, xor_popc, and_popc };

/// d = a * b + c
struct multiply_step {
  fragment a, b, c, d;
  std::uint32_t problems = 1;  ///< m8n8k4 of f16 is four small ones
  product how = product::multiply;
  bool saturate = false;
};

inline constexpr int max_cells_a = 16 * 256, max_cells_b = 256 * 8, max_cells_c = 512;

}  // namespace outboard::ptx
