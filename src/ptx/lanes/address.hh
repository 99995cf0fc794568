// How a memory step gets 32 checked addresses. Loads, stores and atomics share it; only lane files include
// it.
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

  alignas(64) word at[warp_lanes];
  char* window = nullptr;
  std::uint64_t stride = 0;

  LANE_INLINE char* pointer(const addresses& x, int l) {
    if constexpr (!in_window) return reinterpret_cast<char*>(x.at[l]);
    if constexpr (in_local) return x.window + static_cast<std::uint64_t>(l) * x.stride + x.at[l];
    return x.window + x.at[l];
  }
};

/// True when all lanes of the chunks have the same address.
template <class vector, int chunks>
LANE_INLINE bool uniform(const vector (&v)[chunks]) {
  vector apart = {};
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) apart |= v[c] ^ v[0][0];
  return !any_bit(apart);
}
/// True when each lane of the chunks is `size` bytes beyond the one before.
template <std::uint32_t size, class vector, int chunks>
LANE_INLINE bool contiguous(const vector (&v)[chunks]) {
  constexpr unsigned lanes = sizeof(vector) / sizeof v[0][0];
  using word = decltype(+v[0][0]);
  vector steps, apart = {};
  for (unsigned l = 0; l < lanes; ++l) steps[l] = static_cast<word>(l * size);
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) apart |= v[c] ^ (steps + (v[0][0] + static_cast<word>(c * lanes * size)));
  return !any_bit(apart);
}

/// The cached range that an instruction uses. Neighbouring instructions get different ones.
LANE_INLINE range& cached(range (&ranges)[4], const inst* i) {
  return ranges[reinterpret_cast<std::uintptr_t>(i) >> 4 & 3];
}

/// The range in which the addresses of an instruction may be.
template <class word>
struct bounds {
  word begin = 0, room = 0;
};

template <where W>
LANE_INLINE bounds<typename addresses<W>::word> bounds_of(warp* w, const inst* i, range (&ranges)[4]) {
  using word = typename addresses<W>::word;
  if constexpr (W == where::generic) {
    const range& valid = cached(ranges, i);
    return {valid.begin, valid.size};
  }
  return {0, static_cast<word>(addresses<W>::in_local ? w->local_stride : w->shared_size)};
}

/// Bits where an access of `size` bytes is outside or misaligned. d <= limit < 2^(bits-1) exactly when the
/// top bits of d and of limit - d are clear: no unsigned comparison, which some vector units lack.
template <std::uint32_t size, class word, class vector>
LANE_INLINE vector bad_bits(vector v, bounds<word> valid) {
  constexpr word top = word{1} << (sizeof(word) * 8 - 1);
  const word limit = valid.room - size;
  const vector d = v - valid.begin;
  return ((d | (limit - d)) & top) | (v & static_cast<word>(size - 1));
}

/// Addresses of a warp whose lanes are all active, kept in registers. False when some lane's access of `size`
/// bytes is outside the cached range or misaligned.
template <where W, std::uint32_t size, int chunks>
LANE_INLINE bool gather_full(warp* w, const inst* i, typename addresses<W>::vector (&v)[chunks],
                             range (&ranges)[4]) {
  using vector = typename addresses<W>::vector;
  using word = typename addresses<W>::word;
  static_assert(chunks == addresses<W>::chunks);
  const auto valid = bounds_of<W>(w, i, ranges);
  if (valid.room < size) return false;
  const auto* a = from<vector>(w, i->r[4]);
  const auto offset = static_cast<word>(i->imm);
  vector bad = {};
#pragma GCC unroll 4
  for (int c = 0; c < chunks; ++c) {
    v[c] = a[c] + offset;
    bad |= bad_bits<size>(v[c], valid);
  }
  return !any_bit(bad);
}

/// Does the same for any mask. x has the addresses even when the result is false.
template <where W, std::uint32_t size>
LANE_INLINE bool gather(warp* w, const inst* i, addresses<W>& x, range (&ranges)[4]) {
  using all = addresses<W>;
  using word = typename all::word;
  const word* a = from<word>(w, i->r[4]);
  const auto offset = static_cast<word>(i->imm);
  if constexpr (all::in_local) {
    x.window = w->local, x.stride = w->local_stride;
  } else if constexpr (all::in_window) {
    x.window = w->shared;
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
  const auto valid = bounds_of<W>(w, i, ranges);
  if (valid.room < size) return false;
  typename all::vector bad = {}, v;
  for (int c = 0; c < all::chunks; ++c) {
    __builtin_memcpy(&v, x.at + c * all::chunk_lanes, sizeof v);
    bad |= bad_bits<size>(v, valid);
  }
  return !any_bit(bad);
}

/// The slow way: checks lane by lane and asks for other ranges. Returns nullptr when every active lane's
/// access is good (x.at then holds good addresses), else what the step must return.
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
