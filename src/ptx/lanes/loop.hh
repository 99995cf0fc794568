// How lane loops are written. Only the files of src/ptx/lanes include it; they are compiled once for each
// instruction set level (OUTBOARD_LANES names it). Everything is in unnamed namespaces or always inlined,
// because if the linker could merge a function, it might use one level's instructions in another.
#pragma once

#include "ptx/lanes/steps.hh"

#if defined(__clang__)
#define LANE_LOOP _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < warp_lanes; ++l)
#else
#define LANE_LOOP _Pragma("GCC ivdep") for (int l = 0; l < warp_lanes; ++l)
#endif
#define LANE_INLINE static inline __attribute__((always_inline))
#define LANE_APART static __attribute__((noinline))

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

template <class T>
LANE_INLINE T* to(warp* w, std::uint32_t reference) {
  return reinterpret_cast<T*>(w->base[0] + reference);
}
template <class T>
LANE_INLINE const T* from(const warp* w, std::uint32_t reference) {
  return reinterpret_cast<const T*>(w->base[reference & 1] + reference);
}
LANE_INLINE std::uint32_t predicate(const warp* w, std::uint32_t reference) {
  return *from<std::uint32_t>(w, reference);
}
LANE_INLINE void set_predicate(warp* w, std::uint32_t reference, std::uint32_t bits) {
  auto* d = to<std::uint32_t>(w, reference);
  *d = (*d & ~w->mask) | (bits & w->mask);
}
LANE_INLINE void set_mask(warp* w, std::uint32_t mask) {
  w->mask = mask;
  LANE_LOOP w->lane[l] = mask & (1u << l) ? ~0u : 0u;
}

/// d[l] = value(l) for active lanes; `value` is evaluated for all lanes, so it must not trap.
template <class D, class F>
LANE_INLINE void assign(warp* w, D* d, F value) {
  if (w->mask == all_lanes) {
    LANE_LOOP d[l] = value(l);
  } else {
    const std::uint32_t* on = w->lane;
    LANE_LOOP {
      const D v = value(l);
      d[l] = on[l] ? v : d[l];
    }
  }
}

template <class D, class A, class F>
const inst* unary(warp* w, const inst* i) {
  const A* a = from<A>(w, i->r[1]);
  assign(
      w,
      to<D>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return static_cast<D>(F::of(a[l])); });
  return i + 1;
}
template <class D, class A, class B, class F>
const inst* binary(warp* w, const inst* i) {
  const A* a = from<A>(w, i->r[1]);
  const B* b = from<B>(w, i->r[2]);
  assign(
      w, to<D>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        return static_cast<D>(F::of(a[l], b[l]));
      });
  return i + 1;
}
template <class D, class A, class B, class C, class F>
const inst* ternary(warp* w, const inst* i) {
  const A* a = from<A>(w, i->r[1]);
  const B* b = from<B>(w, i->r[2]);
  const C* c = from<C>(w, i->r[3]);
  assign(
      w, to<D>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        return static_cast<D>(F::of(a[l], b[l], c[l]));
      });
  return i + 1;
}
template <class A, class B, class F>
const inst* compare(warp* w, const inst* i) {
  const A* a = from<A>(w, i->r[1]);
  const B* b = from<B>(w, i->r[2]);
  std::uint32_t bits = 0;
  LANE_LOOP bits |= F::of(a[l], b[l]) ? 1u << l : 0u;
  set_predicate(w, i->r[0], bits);
  return i + 1;
}

}  // namespace

void fill_integer(step_table& t);
void fill_float(step_table& t);
void fill_convert(step_table& t);
void fill_memory(step_table& t);
void fill_atomic(step_table& t);
void fill_control(step_table& t);
void fill_half(step_table& t);
void fill_matrix(step_table& t);

}  // namespace outboard::ptx::OUTBOARD_LANES
