// Loads and stores. Device memory is shared between worker threads exactly as on a GPU: what races there
// races here (naturally aligned elements do not tear), so these files are built without TSan.
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

/// Lanes of one chunk: a broadcast, a block or lane by lane.
template <where W, class M, class R, int N>
LANE_INLINE void load_chunk(const addresses<W>& x, R* const (&d)[N], int c) {
  using all = addresses<W>;
  const int first = c * all::chunk_lanes;
  const char* p = all::pointer(x, first);
  if (all::uniform(x, c)) {
    for (int n = 0; n < N; ++n) {
      const R v = read<M>(p + n * sizeof(M));
      for (int l = 0; l < all::chunk_lanes; ++l) d[n][first + l] = v;
    }
  } else if (all::template contiguous<sizeof(M) * N>(x, c)) {
    const M* memory = reinterpret_cast<const M*>(p);
    for (int n = 0; n < N; ++n) {
      R* to_register = d[n] + first;
      for (int l = 0; l < all::chunk_lanes; ++l) to_register[l] = memory[l * N + n];
    }
  } else {
    for (int l = first; l < first + all::chunk_lanes; ++l) load_lane<M>(d, all::pointer(x, l), l);
  }
}

template <where W, class M, int N>
const inst* load(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  using all = addresses<W>;
  addresses<W> x;
  if (!gather<W, sizeof(M) * N>(w, i, x, w->read)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(M) * N, false)) return out;
  }
  R* d[N];
  for (int n = 0; n < N; ++n) d[n] = to<R>(w, i->r[n]);
  if (w->mask != all_lanes) {
    for (u32 on = w->mask; on != 0; on &= on - 1) {
      const int l = __builtin_ctz(on);
      load_lane<M>(d, all::pointer(x, l), l);
    }
  } else if (all::in_local || !x.checked) {
    for (int l = 0; l < warp_lanes; ++l) load_lane<M>(d, all::pointer(x, l), l);
  } else {
    for (int c = 0; c < all::chunks; ++c) load_chunk<W, M>(x, d, c);
  }
  return i + 1;
}

template <where W, class M, int N>
const inst* store(warp* w, const inst* i) {
  using R = typename register_for<M>::type;
  using all = addresses<W>;
  addresses<W> x;
  if (!gather<W, sizeof(M) * N>(w, i, x, w->write)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(M) * N, true)) return out;
  }
  const R* s[N];
  for (int n = 0; n < N; ++n) s[n] = from<R>(w, i->r[n]);
  if (w->mask == all_lanes && !all::in_local && x.checked) {
    for (int c = 0; c < all::chunks; ++c) {
      const int first = c * all::chunk_lanes;
      if (all::template contiguous<sizeof(M) * N>(x, c)) {
        M* memory = reinterpret_cast<M*>(all::pointer(x, first));
        for (int n = 0; n < N; ++n) {
          const R* value = s[n] + first;
          for (int l = 0; l < all::chunk_lanes; ++l) memory[l * N + n] = static_cast<M>(value[l]);
        }
      } else {
        for (int l = first; l < first + all::chunk_lanes; ++l) {
          for (int n = 0; n < N; ++n) reinterpret_cast<M*>(all::pointer(x, l))[n] = static_cast<M>(s[n][l]);
        }
      }
    }
    return i + 1;
  }
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    for (int n = 0; n < N; ++n) reinterpret_cast<M*>(all::pointer(x, l))[n] = static_cast<M>(s[n][l]);
  }
  return i + 1;
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
