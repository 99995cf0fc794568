// How steps outside lanes/ are written: lane after lane, compiled once for the baseline instruction set. For
// instructions that kernels seldom use or whose work is not in the lane loop. Included by plain_*.cc only; a
// step runs on the worker that has the warp.
#pragma once

#include <bit>
#include <cstdint>

#include "ptx/lanes/machine.hh"
#include "ptx/lanes/steps.hh"

namespace outboard::ptx {

/// Element `lane` of a register or constant.
template <class T>
T lane_value(const warp* w, std::uint32_t reference, int lane) {
  return reinterpret_cast<const T*>(w->base[reference & 1] + reference)[lane];
}
template <class T>
void set_lane(warp* w, std::uint32_t reference, int lane, T value) {
  reinterpret_cast<T*>(w->base[0] + reference)[lane] = value;
}
inline bool lane_predicate(const warp* w, std::uint32_t reference, int lane) {
  return *reinterpret_cast<const std::uint32_t*>(w->base[reference & 1] + reference) >> lane & 1;
}
inline void set_lane_predicate(warp* w, std::uint32_t reference, int lane, bool value) {
  auto& bits = *reinterpret_cast<std::uint32_t*>(w->base[0] + reference);
  bits = (bits & ~(1u << lane)) | (value ? 1u << lane : 0u);
}

template <class F>
void each_lane(const warp* w, F f) {
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) f(std::countr_zero(on));
}

/// A memory operand: as inst::r[4] and inst::imm of loads, with its window.
struct place {
  where window = where::generic;
  std::uint32_t address = 0;
  std::int64_t offset = 0;
};

/// Host address of one lane's access of `size` bytes, checked; nullptr after recording a fault.
char* lane_place(warp* w, const inst* i, const place& p, int lane, std::uint32_t size, std::uint32_t align,
                 bool write);
/// The same for a shared address (offset or generic) that the instruction demands; never elsewhere.
char* lane_shared(warp* w, const inst* i, const place& p, int lane, std::uint32_t size, std::uint32_t align);
/// The same for an address that is known already.
char* checked_memory(warp* w, const inst* i, int lane, std::uint64_t address, std::uint32_t size,
                     std::uint32_t align, bool write);

}  // namespace outboard::ptx
