// Loads, stores and moves of matrix fragments. Decode reads this; the steps run anywhere.
#pragma once

#include "ptx/lanes/matrix.hh"
#include "ptx/run/plain.hh"

namespace outboard::ptx {

/// wmma.load and wmma.store: inst::imm points to this.
struct tile_step {
  fragment tile;
  bool store = false, by_column = false;
  std::uint32_t bits = 16;  ///< of an element in memory
  place base;
  std::uint32_t stride = 0;  ///< register, in elements
};
const inst* tile_run(warp* w, const inst* i);

/// ldmatrix and stmatrix of 8x8 halves: inst::imm points to this.
struct rows_step {
  bool store = false, transposed = false;
  std::uint32_t matrices = 1;
  std::uint32_t r[4] = {};
  place row;
};
const inst* rows_run(warp* w, const inst* i);

/// movmatrix: r[0] = transposed r[1].
const inst* matrix_transpose(warp* w, const inst* i);
/// elect.sync: r[0] leader, r[1] predicate, r[5] member mask.
const inst* elect(warp* w, const inst* i);

}  // namespace outboard::ptx
