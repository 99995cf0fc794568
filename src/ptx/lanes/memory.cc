// Loads and stores. Worker threads share device memory as on a GPU, so a kernel's races there are races here
// (naturally aligned elements do not tear), and these files are built without TSan.
#include "ptx/lanes/address.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// 8-bit elements are kept in 16-bit registers.
// clang-format off
template <class M> struct register_for { using type = M; };
template <> struct register_for<u8> { using type = u16; };
template <> struct register_for<std::int8_t> { using type = std::int16_t; };
// clang-format on

template <class M>
LANE_INLINE M read(const char* p) {
  return *reinterpret_cast<const M*>(p);
}

template <class M, class R, int N>
LANE_INLINE void load_lane(R* const (&d)[N], const char* p, int l) {
  for (int n = 0; n < N; ++n) d[n][l] = read<M>(p + n * sizeof(M));
}

/// The addresses of a chunk whose lanes follow no pattern.
template <where W>
struct scattered {
  using word = typename addresses<W>::word;
  alignas(64) word at[addresses<W>::chunk_lanes];
  char* window;

  LANE_INLINE scattered of(typename addresses<W>::vector v, char* window) {
    scattered s;
    __builtin_memcpy(s.at, &v, sizeof v);
    s.window = window;
    return s;
  }
  LANE_INLINE char* pointer(const scattered& s, int l) {
    if constexpr (W == where::generic) return reinterpret_cast<char*>(s.at[l]);
    return s.window + s.at[l];
  }
};

template <where W, class V>
LANE_INLINE char* first_pointer(const warp* w, V v) {
  if constexpr (W == where::generic) return reinterpret_cast<char*>(v[0]);
  return w->shared + v[0];
}

// Code that needs the stack is kept out of line, so that the common paths need no frame.

/// Handles the active lanes one after another; this is where an access may fault.
template <where W, class M, int N>
LANE_APART const inst* load_each(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  addresses<W> x;
  if (!gather<W, sizeof(M) * N>(w, i, x, w->read)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(M) * N, false)) return out;
  }
  R* d[N];
  for (int n = 0; n < N; ++n) d[n] = to<R>(w, i->r[n]);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    load_lane<M>(d, addresses<W>::pointer(x, l), l);
  }
  return i + 1;
}

/// Loads chunks of a full warp that are a broadcast or a block; false when they are neither.
template <where W, class M, class R, int N, class V, int chunks>
LANE_INLINE bool load_pattern(const warp* w, const V (&v)[chunks], R* const (&d)[N], int first) {
  constexpr int lanes = addresses<W>::chunk_lanes * chunks;
  const char* p = first_pointer<W>(w, v[0]);
  if (uniform(v)) {
    for (int n = 0; n < N; ++n) {
      const R value = read<M>(p + n * sizeof(M));
      for (int l = 0; l < lanes; ++l) d[n][first + l] = value;
    }
    return true;
  }
  if (!contiguous<sizeof(M) * N>(v)) return false;
  if constexpr (N == 1 && sizeof(M) == sizeof(R)) {
    __builtin_memcpy(d[0] + first, p, lanes * sizeof(M));
  } else {
    const M* memory = reinterpret_cast<const M*>(p);
    for (int n = 0; n < N; ++n) {
      R* to_register = d[n] + first;
      for (int l = 0; l < lanes; ++l) to_register[l] = memory[l * N + n];
    }
  }
  return true;
}

template <where W, class M, int N>
LANE_APART void load_scattered(warp* w, const inst* i, typename addresses<W>::vector v, int first) {
  using R = typename register_for<M>::type;
  const auto s = scattered<W>::of(v, w->shared);
  R* d[N];
  for (int n = 0; n < N; ++n) d[n] = to<R>(w, i->r[n]);
  for (int l = 0; l < addresses<W>::chunk_lanes; ++l) load_lane<M>(d, scattered<W>::pointer(s, l), first + l);
}

template <where W, class M, int N>
const inst* load(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  using all = addresses<W>;
  if constexpr (!all::in_local) {
    typename all::vector v[all::chunks];
    if (w->mask == all_lanes && gather_full<W, sizeof(M) * N>(w, i, v, w->read)) {
      R* d[N];
      for (int n = 0; n < N; ++n) d[n] = to<R>(w, i->r[n]);
      if (load_pattern<W, M>(w, v, d, 0)) return i + 1;
        // A pattern may hold for parts only, such as the rows of a tile.
#pragma GCC unroll 4
      for (int c = 0; c < all::chunks; ++c) {
        const typename all::vector part[1] = {v[c]};
        const int first = c * all::chunk_lanes;
        if (!load_pattern<W, M>(w, part, d, first)) load_scattered<W, M, N>(w, i, v[c], first);
      }
      return i + 1;
    }
  }
  return load_each<W, M, N>(w, i);
}

template <where W, class M, int N>
LANE_APART const inst* store_each(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  addresses<W> x;
  if (!gather<W, sizeof(M) * N>(w, i, x, w->write)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(M) * N, true)) return out;
  }
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    M* memory = reinterpret_cast<M*>(addresses<W>::pointer(x, l));
    for (int n = 0; n < N; ++n) memory[n] = static_cast<M>(from<R>(w, i->r[n])[l]);
  }
  return i + 1;
}

/// Stores chunks of a full warp to a block; false when they do not form one.
template <where W, class M, class R, int N, class V, int chunks>
LANE_INLINE bool store_pattern(const warp* w, const V (&v)[chunks], const R* const (&s)[N], int first) {
  constexpr int lanes = addresses<W>::chunk_lanes * chunks;
  if (!contiguous<sizeof(M) * N>(v)) return false;
  char* p = first_pointer<W>(w, v[0]);
  if constexpr (N == 1 && sizeof(M) == sizeof(R)) {
    __builtin_memcpy(p, s[0] + first, lanes * sizeof(M));
  } else {
    M* memory = reinterpret_cast<M*>(p);
    for (int n = 0; n < N; ++n) {
      const R* value = s[n] + first;
      for (int l = 0; l < lanes; ++l) memory[l * N + n] = static_cast<M>(value[l]);
    }
  }
  return true;
}

template <where W, class M, int N>
LANE_APART void store_scattered(const warp* w, const inst* i, typename addresses<W>::vector v, int first) {
  using R = typename register_for<M>::type;
  const auto to_lane = scattered<W>::of(v, w->shared);
  for (int l = 0; l < addresses<W>::chunk_lanes; ++l) {
    M* memory = reinterpret_cast<M*>(scattered<W>::pointer(to_lane, l));
    for (int n = 0; n < N; ++n) memory[n] = static_cast<M>(from<R>(w, i->r[n])[first + l]);
  }
}

template <where W, class M, int N>
const inst* store(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  using all = addresses<W>;
  if constexpr (!all::in_local) {
    typename all::vector v[all::chunks];
    if (w->mask == all_lanes && gather_full<W, sizeof(M) * N>(w, i, v, w->write)) {
      const R* s[N];
      for (int n = 0; n < N; ++n) s[n] = from<R>(w, i->r[n]);
      if (store_pattern<W, M>(w, v, s, 0)) return i + 1;
#pragma GCC unroll 4
      for (int c = 0; c < all::chunks; ++c) {
        const typename all::vector part[1] = {v[c]};
        const int first = c * all::chunk_lanes;
        if (!store_pattern<W, M>(w, part, s, first)) store_scattered<W, M, N>(w, i, v[c], first);
      }
      return i + 1;
    }
  }
  return store_each<W, M, N>(w, i);
}

template <class M>
const inst* load_parameter(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  const R v = read<M>(w->parameters + i->imm);
  assign(
      w, to<R>(w, i->r[0]), [=](int) __attribute__((always_inline)) { return v; });
  return i + 1;
}

template <where W, class M>
void fill_element(step_table& t, int log2) {
  constexpr int at = static_cast<int>(W);
  t.load[at][log2][0] = load<W, M, 1>;
  t.load[at][log2][1] = load<W, M, 2>;
  t.store[at][log2][0] = store<W, M, 1>;
  t.store[at][log2][1] = store<W, M, 2>;
  if constexpr (sizeof(M) < 8) {
    t.load[at][log2][2] = load<W, M, 4>;
    t.store[at][log2][2] = store<W, M, 4>;
  }
}

template <where W>
void fill_space(step_table& t) {
  fill_element<W, u8>(t, 0);
  fill_element<W, u16>(t, 1);
  fill_element<W, u32>(t, 2);
  fill_element<W, u64>(t, 3);
  t.load_s8[static_cast<int>(W)] = load<W, std::int8_t, 1>;
}

}  // namespace

void fill_memory(step_table& t) {
  fill_space<where::generic>(t);
  fill_space<where::shared32>(t);
  fill_space<where::shared64>(t);
  fill_space<where::local32>(t);
  fill_space<where::local64>(t);
  t.load_parameter[0] = load_parameter<u8>;
  t.load_parameter[1] = load_parameter<u16>;
  t.load_parameter[2] = load_parameter<u32>;
  t.load_parameter[3] = load_parameter<u64>;
  t.load_parameter_s8 = load_parameter<std::int8_t>;
}

}  // namespace outboard::ptx::OUTBOARD_LANES
