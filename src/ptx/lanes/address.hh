// How a memory step gets 32 checked addresses: shared by loads, stores and atomics. Included by lane files
// only.
#pragma once

#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

// clang-format off
template <where W> struct address_type { using type = std::uint64_t; };
template <> struct address_type<where::shared32> { using type = std::uint32_t; };
template <> struct address_type<where::local32> { using type = std::uint32_t; };
// clang-format on

/// Addresses of all lanes; those of inactive lanes repeat an active one, so that they pass every check.
template <where W>
struct addresses {
  using word = typename address_type<W>::type;
  static constexpr bool in_window = W != where::generic;
  static constexpr bool in_local = W == where::local32 || W == where::local64;

  alignas(64) word at[warp_lanes];
  bool uniform = false, contiguous = false;
  char* window = nullptr;
  std::uint64_t stride = 0;

  LANE_INLINE char* pointer(const addresses& x, int l) {
    if constexpr (!in_window) return reinterpret_cast<char*>(x.at[l]);
    if constexpr (in_local) return x.window + static_cast<std::uint64_t>(l) * x.stride + x.at[l];
    return x.window + x.at[l];
  }
};

/// False when some lane's access of `size` bytes is outside the cached range or misaligned.
template <where W, std::uint32_t size>
LANE_INLINE bool gather(warp* w, const inst* i, addresses<W>& x, const range& valid) {
  using word = typename addresses<W>::word;
  const word* a = from<word>(w, i->r[4]);
  const auto offset = static_cast<word>(i->imm);
  word begin = 0, room = 0;
  if constexpr (W == where::generic) {
    begin = valid.begin, room = valid.size;
  } else if constexpr (addresses<W>::in_local) {
    room = static_cast<word>(w->local_stride), x.window = w->local, x.stride = w->local_stride;
  } else {
    room = static_cast<word>(w->shared_size), x.window = w->shared;
  }
  if (w->mask == all_lanes) {
    LANE_LOOP x.at[l] = a[l] + offset;
  } else {
    const word any = a[__builtin_ctz(w->mask)] + offset;
    const std::uint32_t* on = w->lane;
    LANE_LOOP {
      const word v = a[l] + offset;
      x.at[l] = on[l] ? v : any;
    }
  }
  if (room < size) return false;
  // d <= limit < 2^(bits-1) exactly when the top bits of d and of limit - d are clear: no unsigned
  // comparison, which vector units lack.
  const word limit = room - size, first = x.at[0];
  word outside = 0, low = 0, differ = 0, apart = 0;
  LANE_LOOP {
    const word v = x.at[l], d = v - begin;
    outside |= d | (limit - d);
    low |= v;
    differ |= v ^ first;
    apart |= v ^ static_cast<word>(first + static_cast<word>(l) * size);
  }
  if (outside >> (sizeof(word) * 8 - 1) || (low & (size - 1))) return false;
  x.uniform = !addresses<W>::in_local && differ == 0;
  x.contiguous = !addresses<W>::in_local && apart == 0 && w->mask == all_lanes;
  return true;
}

/// The slow way: lane by lane, asking for other ranges. nullptr when every active lane's access is good (then
/// x.at holds good addresses), else what the step returns.
template <where W>
const inst* check_lanes(warp* w, const inst* i, const addresses<W>& x, std::uint32_t size, bool write) {
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    const std::uint64_t v = x.at[l];
    if (v & (size - 1)) return warp_fault(w, i, fault::misaligned, l, v);
    bool good;
    if constexpr (W == where::generic) {
      const range& r = write ? w->write : w->read;
      good = (v - r.begin < r.size && r.size - (v - r.begin) >= size) || warp_resolve(w, v, size, write);
    } else {
      const std::uint64_t room = addresses<W>::in_local ? w->local_stride : w->shared_size;
      good = v < room && room - v >= size;
    }
    if (!good) return warp_fault(w, i, fault::address, l, v);
  }
  return nullptr;
}

}  // namespace
}  // namespace outboard::ptx::OUTBOARD_LANES
