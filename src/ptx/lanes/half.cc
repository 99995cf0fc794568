// f16, bf16 and their pairs. They are computed in single or double precision and rounded once.
#include "ptx/lanes/half.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;

// clang-format off
struct binary16 {
  LANE_INLINE float in(u32 v) { return half_to_float(v); }
  LANE_INLINE u16 out(float v) { return float_to_half(v); }
  LANE_INLINE u16 fma(float a, float b, float c) { return double_to_half(fma_to_odd(a, b, c), 0); }
};
struct brain16 {
  LANE_INLINE float in(u32 v) { return bfloat_to_float(v); }
  LANE_INLINE u16 out(float v) { return float_to_bfloat(v); }
  LANE_INLINE u16 fma(float a, float b, float c) { return float_to_bfloat(double_to_odd_float(fma_to_odd(a, b, c))); }
};

struct f_add { LANE_INLINE float of(float a, float b) { return a + b; } };
struct f_sub { LANE_INLINE float of(float a, float b) { return a - b; } };
struct f_mul { LANE_INLINE float of(float a, float b) { return a * b; } };
struct f_div { LANE_INLINE float of(float a, float b) { return a / b; } };
struct f_min { LANE_INLINE float of(float a, float b) { return a != a ? b : b != b ? a : a < b || (a == b && bits_of(a) >> 31) ? a : b; } };
struct f_max { LANE_INLINE float of(float a, float b) { return a != a ? b : b != b ? a : a > b || (a == b && bits_of(b) >> 31) ? a : b; } };
struct f_min_nan { LANE_INLINE float of(float a, float b) { return a != a ? a : b != b ? b : f_min::of(a, b); } };
struct f_max_nan { LANE_INLINE float of(float a, float b) { return a != a ? a : b != b ? b : f_max::of(a, b); } };
struct f_eq { LANE_INLINE bool of(float a, float b) { return a == b; } };
struct f_ne { LANE_INLINE bool of(float a, float b) { return a < b || a > b; } };
struct f_lt { LANE_INLINE bool of(float a, float b) { return a < b; } };
struct f_le { LANE_INLINE bool of(float a, float b) { return a <= b; } };
struct f_gt { LANE_INLINE bool of(float a, float b) { return a > b; } };
struct f_ge { LANE_INLINE bool of(float a, float b) { return a >= b; } };
struct f_equ { LANE_INLINE bool of(float a, float b) { return !(a < b || a > b); } };
struct f_neu { LANE_INLINE bool of(float a, float b) { return !(a == b); } };
struct f_ltu { LANE_INLINE bool of(float a, float b) { return !(a >= b); } };
struct f_leu { LANE_INLINE bool of(float a, float b) { return !(a > b); } };
struct f_gtu { LANE_INLINE bool of(float a, float b) { return !(a <= b); } };
struct f_geu { LANE_INLINE bool of(float a, float b) { return !(a < b); } };
struct f_num { LANE_INLINE bool of(float a, float b) { return a == a && b == b; } };
struct f_nan { LANE_INLINE bool of(float a, float b) { return a != a || b != b; } };
template <class H> struct f_neg { LANE_INLINE u32 of(u32 a) { return H::in(a) == H::in(a) ? a ^ 0x8000 : 0x7fff; } };
template <class H> struct f_abs { LANE_INLINE u32 of(u32 a) { return H::in(a) == H::in(a) ? a & 0x7fff : 0x7fff; } };
template <class H> struct f_relu { LANE_INLINE u32 of(u32 a) { return (a & 0x8000) && H::in(a) == H::in(a) ? 0 : a; } };
template <class H> struct f_saturate { LANE_INLINE u32 of(u32 a) { const float v = H::in(a); return H::out(v > 0 ? (v < 1 ? v : 1.0f) : 0.0f); } };
template <class H> struct f_ex2 { LANE_INLINE u32 of(u32 a) { return H::out(__builtin_exp2f(H::in(a))); } };
template <class H> struct f_tanh { LANE_INLINE u32 of(u32 a) { return H::out(__builtin_tanhf(H::in(a))); } };

// One value (u16) or a pair (u32) with the same function.
template <class H, class F> struct lift2 {
  LANE_INLINE u16 of(u16 a, u16 b) { return H::out(F::of(H::in(a), H::in(b))); }
  LANE_INLINE u32 of(u32 a, u32 b) {
    return of(static_cast<u16>(a), static_cast<u16>(b)) | static_cast<u32>(of(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16))) << 16; } };
template <class H> struct lift_fma {
  LANE_INLINE u16 of(u16 a, u16 b, u16 c) { return H::fma(H::in(a), H::in(b), H::in(c)); }
  LANE_INLINE u32 of(u32 a, u32 b, u32 c) {
    return of(static_cast<u16>(a), static_cast<u16>(b), static_cast<u16>(c)) |
           static_cast<u32>(of(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16), static_cast<u16>(c >> 16))) << 16; } };
template <class F> struct lift1 {
  LANE_INLINE u16 of(u16 a) { return static_cast<u16>(F::of(a)); }
  LANE_INLINE u32 of(u32 a) { return (F::of(a & 0xffff) & 0xffff) | F::of(a >> 16) << 16; } };
template <class H, class F> struct lift_compare { LANE_INLINE bool of(u16 a, u16 b) { return F::of(H::in(a), H::in(b)); } };
// clang-format on

template <class H>
void fill_type(step_table& t, element one, element two) {
  const auto set = [&](op o, element e, step s) { t.simple[static_cast<int>(o)][static_cast<int>(e)] = s; };
#define BOTH_2(o, F)                                   \
  set(op::o, one, binary<u16, u16, u16, lift2<H, F>>); \
  set(op::o, two, binary<u32, u32, u32, lift2<H, F>>)
#define BOTH_1(o, F)                          \
  set(op::o, one, unary<u16, u16, lift1<F>>); \
  set(op::o, two, unary<u32, u32, lift1<F>>)
  BOTH_2(add, f_add);
  BOTH_2(sub, f_sub);
  BOTH_2(mul, f_mul);
  BOTH_2(min, f_min);
  BOTH_2(max, f_max);
  BOTH_2(min_nan, f_min_nan);
  BOTH_2(max_nan, f_max_nan);
  BOTH_1(neg, f_neg<H>);
  BOTH_1(abs, f_abs<H>);
  BOTH_1(relu, f_relu<H>);
  BOTH_1(saturate, f_saturate<H>);
  BOTH_1(ex2, f_ex2<H>);
  BOTH_1(tanh, f_tanh<H>);
#undef BOTH_1
#undef BOTH_2
  set(op::fma, one, ternary<u16, u16, u16, u16, lift_fma<H>>);
  set(op::fma, two, ternary<u32, u32, u32, u32, lift_fma<H>>);
#define COMPARE(o) set(op::o, one, compare<u16, u16, lift_compare<H, f_##o>>)
  COMPARE(eq);
  COMPARE(ne);
  COMPARE(lt);
  COMPARE(le);
  COMPARE(gt);
  COMPARE(ge);
  COMPARE(equ);
  COMPARE(neu);
  COMPARE(ltu);
  COMPARE(leu);
  COMPARE(gtu);
  COMPARE(geu);
  COMPARE(num);
  COMPARE(nan);
#undef COMPARE
}

}  // namespace

void fill_half(step_table& t) {
  fill_type<binary16>(t, element::f16, element::f16x2);
  fill_type<brain16>(t, element::bf16, element::bf16x2);
}

}  // namespace outboard::ptx::OUTBOARD_LANES
