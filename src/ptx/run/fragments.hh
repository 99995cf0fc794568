// Where the elements of matrices live in the registers of a warp: the layouts of mma.sync as the ISA draws
// them, and for wmma (whose layouts are the device's own) blocks of those. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptx/lanes/matrix.hh"

namespace outboard::ptx {

enum class operand_of : std::uint8_t { a, b, accumulator };

/// cell::count when the name is none: f16 bf16 tf32 e4m3 e5m2 f32 f64 s8 u8 s4 u4 b1 s32.
cell cell_of(std::string_view name);
std::uint32_t bits_of_cell(cell kind);

struct matrix_shape {
  std::uint32_t m = 0, n = 0, k = 0;
};
/// m16n8k16; zeros when it is none.
matrix_shape shape_of(std::string_view name);

/// The fragment without its registers' references; `positions` holds what fragment::position points to.
/// False when the ISA has no such fragment.
bool make_fragment(const matrix_shape& shape, operand_of which, cell kind, bool wmma, fragment& out,
                   std::vector<std::uint16_t>& positions);

/// m8n8k4 of f16: four problems, one of each quad pair; `by_column` as the modifiers .row and .col say.
bool make_quad_pair_fragment(operand_of which, cell kind, bool by_column, fragment& out,
                             std::vector<std::uint16_t>& positions);

}  // namespace outboard::ptx
