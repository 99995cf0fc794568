// Atomic updates that the lane loops do not have: halves, vectors, 128 bits, elements of bulk reductions.
// Decode reads this; the steps run anywhere.
#pragma once

#include "ptx/lanes/steps.hh"
#include "ptx/run/plain.hh"

namespace outboard::ptx {

std::uint32_t atomic_width(element kind);
/// Whether atomic_update knows the combination.
bool atomic_known(atom what, element kind);
/// *at = what(*at, *operand), atomically; the bits of before, low bytes first.
std::uint64_t atomic_update(atom what, element kind, char* at, const void* operand);

/// Each element by itself, as the ISA has it. r: old values (temporaries for red), operands.
struct atomic_step {
  atom what = atom::add;
  element kind = element::f16;
  place to;
  std::uint32_t elements = 1;
  std::uint32_t before[8] = {}, value[8] = {};
};
const inst* atomic_run(warp* w, const inst* i);

/// 128 bits: exch, cas. r: d, b, c; inst::imm points to this.
struct wide_atomic_step {
  bool compares = false;
  place to;
  std::uint32_t d = 0, b = 0, c = 0;
};
const inst* wide_atomic_run(warp* w, const inst* i);

/// ld and st wider than the lane loops go: v4.b64, v8.b32, b128.
struct wide_access_step {
  place at;
  std::uint32_t elements = 1, bytes = 16;  ///< bytes of one: 4, 8, 16
  std::uint32_t value[8] = {};
  bool store = false;
};
const inst* wide_access_run(warp* w, const inst* i);

/// mov of 128-bit registers: r[0] wide, r[1], r[2] its halves, aux: 0 packs, 1 unpacks, 2 copies r[1].
const inst* wide_move(warp* w, const inst* i);

}  // namespace outboard::ptx
