// How a memory step gets 32 checked addresses: shared by loads, stores and atomics. Included by lane files
// only.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

// clang-format off
template <where W> struct address_type { using type = std::uint64_t; };
template <> struct address_type<where::shared32> { using type = std::uint32_t; };
template <> struct address_type<where::local32> { using type = std::uint32_t; };
// clang-format on

/// 64 bytes of addresses: one register of the widest level, several of the others.
template <class word>
struct vector_of {
  typedef word type __attribute__((vector_size(64)));
};

template <class V>
LANE_INLINE bool any_bit(V v) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(v), reinterpret_cast<__m512i>(v)) != 0;
#elif defined(__AVX2__)
  __m256i half[2];
  __builtin_memcpy(half, &v, sizeof v);
  const __m256i both = _mm256_or_si256(half[0], half[1]);
  return !_mm256_testz_si256(both, both);
#else
  std::uint64_t part[8], all = 0;
  __builtin_memcpy(part, &v, sizeof v);
  for (const auto p : part) all |= p;
  return all != 0;
#endif
}

/// Addresses of all lanes; those of inactive lanes repeat an active one, so that they pass every check.
template <where W>
struct addresses {
  using word = typename address_type<W>::type;
  using vector = typename vector_of<word>::type;
  static constexpr bool in_window = W != where::generic;
  static constexpr bool in_local = W == where::local32 || W == where::local64;
  static constexpr int chunk_lanes = 64 / sizeof(word);
  static constexpr int chunks = warp_lanes / chunk_lanes;

  union {
    vector chunk[chunks];
    word at[warp_lanes];
  };
  bool checked = false;  // all lanes are good, and patterns may be asked for
  char* window = nullptr;
  std::uint64_t stride = 0;

  LANE_INLINE char* pointer(const addresses& x, int l) {
    if constexpr (!in_window) return reinterpret_cast<char*>(x.at[l]);
    if constexpr (in_local) return x.window + static_cast<std::uint64_t>(l) * x.stride + x.at[l];
    return x.window + x.at[l];
  }
  /// All lanes of the chunk at one address.
  LANE_INLINE bool uniform(const addresses& x, int c) { return !any_bit(x.chunk[c] ^ x.chunk[c][0]); }
  /// Lane after lane of the chunk `size` bytes further.
  template <std::uint32_t size>
  LANE_INLINE bool contiguous(const addresses& x, int c) {
    vector apart;
    for (int l = 0; l < chunk_lanes; ++l) apart[l] = static_cast<word>(static_cast<word>(l) * size);
    return !any_bit(x.chunk[c] ^ (apart + x.chunk[c][0]));
  }
};

/// The cached range an instruction uses: neighbouring instructions get different ones.
LANE_INLINE range& cached(range (&ranges)[4], const inst* i) {
  return ranges[reinterpret_cast<std::uintptr_t>(i) >> 4 & 3];
}

/// False when some lane's access of `size` bytes is outside the cached range or misaligned.
template <where W, std::uint32_t size>
LANE_INLINE bool gather(warp* w, const inst* i, addresses<W>& x, range (&ranges)[4]) {
  using all = addresses<W>;
  using word = typename all::word;
  using vector = typename all::vector;
  const word* a = from<word>(w, i->r[4]);
  const auto offset = static_cast<word>(i->imm);
  word begin = 0, room = 0;
  if constexpr (W == where::generic) {
    const range& valid = cached(ranges, i);
    begin = valid.begin, room = valid.size;
  } else if constexpr (all::in_local) {
    room = static_cast<word>(w->local_stride), x.window = w->local, x.stride = w->local_stride;
  } else {
    room = static_cast<word>(w->shared_size), x.window = w->shared;
  }
  if (w->mask == all_lanes) {
    const auto* v = reinterpret_cast<const vector*>(a);
    for (int c = 0; c < all::chunks; ++c) x.chunk[c] = v[c] + offset;
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
  // comparison, which some vector units lack.
  constexpr word top = word{1} << (sizeof(word) * 8 - 1);
  const word limit = room - size;
  vector bad = {};
  for (int c = 0; c < all::chunks; ++c) {
    const vector v = x.chunk[c], d = v - begin;
    bad |= ((d | (limit - d)) & top) | (v & static_cast<word>(size - 1));
  }
  x.checked = !any_bit(bad);
  return x.checked;
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
      range& r = write ? cached(w->write, i) : cached(w->read, i);
      good = (v - r.begin < r.size && r.size - (v - r.begin) >= size) || warp_resolve(w, v, size, write, r);
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
