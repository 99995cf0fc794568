#include "ptx/run/fragments.hh"

#include <iterator>

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;

constexpr std::string_view names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "f32", "f64",
                                      "s8",  "u8",   "s4",   "u4",   "b1",   "s32"};

struct spot {
  u32 row, column;
};

template <class F>
void tabulate(fragment& f, std::vector<u16>& positions, F at) {
  positions.clear();
  if (f.distinct == 0) f.distinct = f.registers;
  for (u32 r = 0; r < f.registers; ++r) {
    for (u32 c = 0; c < f.cells; ++c) {
      for (u32 l = 0; l < 32; ++l) {
        const spot s = at(r, c, l);
        positions.push_back(static_cast<u16>(s.row * f.columns + s.column));
      }
    }
  }
  f.position = positions.data();
}

bool known(const matrix_shape& s, cell kind, bool wmma) {
  struct entry {
    cell kind;
    u32 m, n, k;
  };
  static constexpr entry mma[] = {
      {cell::f16, 16, 8, 8},   {cell::f16, 16, 8, 16}, {cell::bf16, 16, 8, 8}, {cell::bf16, 16, 8, 16},
      {cell::tf32, 16, 8, 4},  {cell::tf32, 16, 8, 8}, {cell::f64, 8, 8, 4},   {cell::f64, 16, 8, 4},
      {cell::f64, 16, 8, 8},   {cell::f64, 16, 8, 16}, {cell::s8, 8, 8, 16},   {cell::s8, 16, 8, 16},
      {cell::s8, 16, 8, 32},   {cell::s4, 8, 8, 32},   {cell::s4, 16, 8, 32},  {cell::s4, 16, 8, 64},
      {cell::b1, 8, 8, 128},   {cell::b1, 16, 8, 128}, {cell::b1, 16, 8, 256}, {cell::e4m3, 16, 8, 16},
      {cell::e4m3, 16, 8, 32},
  };
  static constexpr entry warp[] = {
      {cell::f16, 16, 16, 16}, {cell::f16, 32, 8, 16},  {cell::f16, 8, 32, 16},  {cell::bf16, 16, 16, 16},
      {cell::bf16, 32, 8, 16}, {cell::bf16, 8, 32, 16}, {cell::tf32, 16, 16, 8}, {cell::f64, 8, 8, 4},
      {cell::s8, 16, 16, 16},  {cell::s8, 32, 8, 16},   {cell::s8, 8, 32, 16},   {cell::s4, 8, 8, 32},
      {cell::b1, 8, 8, 128},
  };
  const cell like = kind == cell::u8     ? cell::s8
                    : kind == cell::u4   ? cell::s4
                    : kind == cell::e5m2 ? cell::e4m3
                                         : kind;
  const entry* list = wmma ? warp : mma;
  const std::size_t size = wmma ? std::size(warp) : std::size(mma);
  for (std::size_t n = 0; n < size; ++n) {
    const entry& e = list[n];
    if (e.kind == like && e.m == s.m && e.n == s.n && e.k == s.k) return true;
  }
  return false;
}

/// Whether some factor type has accumulators of this shape and type.
bool known_accumulator(const matrix_shape& s, cell kind, bool wmma) {
  const auto any = [&](std::initializer_list<cell> factors) {
    for (const cell c : factors) {
      if (known(s, c, wmma)) return true;
    }
    return false;
  };
  switch (kind) {
    case cell::f16:
      return any({cell::f16, cell::e4m3});
    case cell::f32:
      return any({cell::f16, cell::bf16, cell::tf32, cell::e4m3});
    case cell::f64:
      return any({cell::f64});
    case cell::s32:
      return any({cell::s8, cell::s4, cell::b1});
    default:
      return false;
  }
}

}  // namespace

cell cell_of(std::string_view name) {
  for (std::size_t n = 0; n < std::size(names); ++n) {
    if (names[n] == name) return static_cast<cell>(n);
  }
  return cell::count;
}

std::uint32_t bits_of_cell(cell kind) {
  static constexpr std::uint8_t bits[] = {16, 16, 32, 8, 8, 32, 64, 8, 8, 4, 4, 1, 32};
  return bits[static_cast<int>(kind)];
}

matrix_shape shape_of(std::string_view name) {
  matrix_shape s;
  std::size_t at = 0;
  const auto part = [&](char letter, u32& out) {
    if (at >= name.size() || name[at] != letter) return false;
    for (++at; at < name.size() && name[at] >= '0' && name[at] <= '9' && out < 1000; ++at) {
      out = out * 10 + static_cast<u32>(name[at] - '0');
    }
    return out != 0;
  };
  if (!part('m', s.m) || !part('n', s.n) || !part('k', s.k) || at != name.size()) return {};
  return s;
}

bool make_fragment(const matrix_shape& s, operand_of which, cell kind, bool wmma, fragment& f,
                   std::vector<std::uint16_t>& positions) {
  f.kind = kind;
  if (which == operand_of::accumulator) {
    if (!known_accumulator(s, kind, wmma)) return false;
    f.rows = s.m, f.columns = s.n;
    f.cells = kind == cell::f16 ? 2 : 1;
    f.registers = s.m * s.n / 32 / f.cells;
    // Blocks of 8 columns, in them (m >= 16) both halves of 16 rows, in them the two neighbours of a lane.
    const u32 across = s.n / 8, halves = s.m == 8 ? 1 : 2;
    tabulate(f, positions, [&](u32 r, u32 c, u32 l) {
      const u32 n = r * f.cells + c, block = n / (2 * halves), half = n / 2 % halves;
      return spot{block / across * 16 + half * 8 + l / 4, block % across * 8 + l % 4 * 2 + n % 2};
    });
    return true;
  }
  if (!known(s, kind, wmma)) return false;
  const u32 bits = bits_of_cell(kind);
  f.cells = bits >= 32 ? 1 : 32 / bits;
  const u32 depth = s.k / (4 * f.cells);  // registers that one row of A takes
  const u32 e = f.cells;
  if (which == operand_of::a) {
    f.rows = s.m, f.columns = s.k;
    const u32 halves = s.m == 8 ? 1 : 2, block = halves * depth;
    const u32 distinct = s.m == 32 ? 2 * block : block;
    f.registers = wmma && kind == cell::f16 ? 8 : distinct, f.distinct = distinct;
    tabulate(f, positions, [&](u32 r, u32 c, u32 l) {
      const u32 n = r % distinct, inside = n % block;
      return spot{n / block * 16 + inside % halves * 8 + l / 4, inside / halves * 4 * e + l % 4 * e + c};
    });
    return true;
  }
  f.rows = s.k, f.columns = s.n;
  const u32 distinct = s.n / 8 * depth;
  f.registers = wmma && kind == cell::f16 ? 8 : distinct, f.distinct = distinct;
  tabulate(f, positions, [&](u32 r, u32 c, u32 l) {
    const u32 n = r % distinct;
    return spot{n % depth * 4 * e + l % 4 * e + c, n / depth * 8 + l / 4};
  });
  return true;
}

bool make_quad_pair_fragment(operand_of which, cell kind, bool by_column, fragment& f,
                             std::vector<std::uint16_t>& positions) {
  f.kind = kind;
  if (which == operand_of::accumulator) {
    if (kind != cell::f16 && kind != cell::f32) return false;
    f.rows = 8, f.columns = 8;
    f.cells = kind == cell::f16 ? 2 : 1;
    f.registers = 8 / f.cells;
  } else {
    if (kind != cell::f16) return false;
    f.rows = which == operand_of::a ? 8 : 4, f.columns = which == operand_of::a ? 4 : 8;
    f.cells = 2, f.registers = 2;
  }
  // Quad pair p: lanes 4p..4p+3 and 16 further.
  tabulate(f, positions, [&](u32 r, u32 c, u32 l) {
    const u32 n = r * f.cells + c, high = l / 16 * 4, problem = l % 16 / 4;
    spot s{};
    if (which == operand_of::accumulator) {
      s = kind == cell::f16 ? spot{l % 4 + high, n}
                            : spot{(l & 1) + (n & 2) + high, (n & 4) + (l & 2) + (n & 1)};
    } else if (which == operand_of::a) {
      s = by_column ? spot{n + high, l % 4} : spot{l % 4 + high, n};
    } else {
      s = by_column ? spot{n, l % 4 + high} : spot{l % 4, n + high};
    }
    return spot{s.row + problem * f.rows, s.column};
  });
  return true;
}

}  // namespace outboard::ptx
