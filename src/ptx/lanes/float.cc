// f32 and f64 lane loops. The code rounds to nearest; other modes run the same loop between two `rounding`
// steps. .approx instructions are computed at full precision of the host's library: inside the error PTX
// allows.
#include <fenv.h>
#include <math.h>

#include "ptx/lanes/half.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// clang-format off
template <class T> struct bits_for;
template <> struct bits_for<float> { using type = u32; };
template <> struct bits_for<double> { using type = u64; };
template <class T> LANE_INLINE auto raw(T v) { return __builtin_bit_cast(typename bits_for<T>::type, v); }
template <class T> LANE_INLINE T real(typename bits_for<T>::type v) { return __builtin_bit_cast(T, v); }
template <class T> inline constexpr auto sign_bit = typename bits_for<T>::type{1} << (sizeof(T) * 8 - 1);
template <class T> inline constexpr auto infinity_bits = sizeof(T) == 4 ? u64{0x7f800000} : u64{0x7ff0000000000000};
template <class T> inline constexpr auto smallest_normal = sizeof(T) == 4 ? u64{0x00800000} : u64{0x0010000000000000};
template <class T> LANE_INLINE auto body(T v) { return raw(v) & ~sign_bit<T>; }
/// The NaN that PTX instructions produce themselves.
template <class T> LANE_INLINE T canonical_nan() { return sizeof(T) == 4 ? static_cast<T>(real<float>(0x7fffffff)) : static_cast<T>(real<double>(0x7ff8000000000000)); }

/// In f32 arithmetic always gives the same NaN; in f64 the host's NaN is kept.
template <class T> LANE_INLINE T one_nan(T v) { if constexpr (sizeof(T) == 4) return v == v ? v : canonical_nan<T>(); else return v; }

struct f_neg { template <class T> LANE_INLINE T of(T a) { return one_nan(real<T>(raw(a) ^ sign_bit<T>)); } };
struct f_abs { template <class T> LANE_INLINE T of(T a) { return one_nan(real<T>(body(a))); } };
struct f_flush { template <class T> LANE_INLINE T of(T a) { return body(a) < smallest_normal<T> ? real<T>(raw(a) & sign_bit<T>) : a; } };
struct f_saturate { template <class T> LANE_INLINE T of(T a) { return a > 0 ? (a < 1 ? a : T{1}) : T{0}; } };
struct f_relu { template <class T> LANE_INLINE T of(T a) { return a != a ? a : a > 0 ? a : T{0}; } };
struct f_sqrt { template <class T> LANE_INLINE T of(T a) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_sqrtf(a)); else return __builtin_sqrt(a); } };
struct f_rsqrt { template <class T> LANE_INLINE T of(T a) { return one_nan(1 / f_sqrt::of(a)); } };
struct f_rcp { template <class T> LANE_INLINE T of(T a) { return one_nan(1 / a); } };
struct f_ex2 { LANE_INLINE float of(float a) { return exp2f(a); } };
struct f_lg2 { LANE_INLINE float of(float a) { return log2f(a); } };
struct f_sin { LANE_INLINE float of(float a) { return sinf(a); } };
struct f_cos { LANE_INLINE float of(float a) { return cosf(a); } };
struct f_tanh { LANE_INLINE float of(float a) { return tanhf(a); } };
struct f_round_even { template <class T> LANE_INLINE T of(T a) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_nearbyintf(a)); else return __builtin_nearbyint(a); } };
struct f_round_zero { template <class T> LANE_INLINE T of(T a) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_truncf(a)); else return __builtin_trunc(a); } };
struct f_round_down { template <class T> LANE_INLINE T of(T a) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_floorf(a)); else return __builtin_floor(a); } };
struct f_round_up { template <class T> LANE_INLINE T of(T a) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_ceilf(a)); else return __builtin_ceil(a); } };

struct f_add { template <class T> LANE_INLINE T of(T a, T b) { return one_nan(a + b); } };
struct f_sub { template <class T> LANE_INLINE T of(T a, T b) { return one_nan(a - b); } };
struct f_mul { template <class T> LANE_INLINE T of(T a, T b) { return one_nan(a * b); } };
struct f_div { template <class T> LANE_INLINE T of(T a, T b) { return one_nan(a / b); } };
/// The reciprocal of a number above 2^126 becomes 0.
struct f_div_approx { LANE_INLINE float of(float a, float b) {
  const bool huge = body(b) > 0x7e800000 && body(b) < 0x7f800000;
  return one_nan(a / (huge ? real<float>((raw(b) & sign_bit<float>) | 0x7f800000) : b)); } };
// A number wins over a NaN, and -0 is below +0.
struct f_min { template <class T> LANE_INLINE T of(T a, T b) {
  const T least = a < b ? a : b < a ? b : real<T>(raw(a) | raw(b));
  return a != a ? (b != b ? canonical_nan<T>() : b) : b != b ? a : least; } };
struct f_max { template <class T> LANE_INLINE T of(T a, T b) {
  const T most = a > b ? a : b > a ? b : real<T>(raw(a) & raw(b));
  return a != a ? (b != b ? canonical_nan<T>() : b) : b != b ? a : most; } };
struct f_min_nan { template <class T> LANE_INLINE T of(T a, T b) { return a != a || b != b ? canonical_nan<T>() : f_min::of(a, b); } };
struct f_max_nan { template <class T> LANE_INLINE T of(T a, T b) { return a != a || b != b ? canonical_nan<T>() : f_max::of(a, b); } };
struct f_copysign { template <class T> LANE_INLINE T of(T a, T b) { return real<T>((raw(a) & sign_bit<T>) | body(b)); } };
struct f_fma { template <class T> LANE_INLINE T of(T a, T b, T c) { if constexpr (sizeof(T) == 4) return one_nan(__builtin_fmaf(a, b, c)); else return __builtin_fma(a, b, c); } };
template <class F> struct flushed {
  template <class T> LANE_INLINE T of(T a, T b) { return f_flush::of(F::of(f_flush::of(a), f_flush::of(b))); }
  template <class T> LANE_INLINE T of(T a, T b, T c) { return f_flush::of(F::of(f_flush::of(a), f_flush::of(b), f_flush::of(c))); } };

struct f_eq { template <class T> LANE_INLINE bool of(T a, T b) { return a == b; } };
struct f_ne { template <class T> LANE_INLINE bool of(T a, T b) { return a < b || a > b; } };
struct f_lt { template <class T> LANE_INLINE bool of(T a, T b) { return a < b; } };
struct f_le { template <class T> LANE_INLINE bool of(T a, T b) { return a <= b; } };
struct f_gt { template <class T> LANE_INLINE bool of(T a, T b) { return a > b; } };
struct f_ge { template <class T> LANE_INLINE bool of(T a, T b) { return a >= b; } };
struct f_equ { template <class T> LANE_INLINE bool of(T a, T b) { return !(a < b || a > b); } };
struct f_neu { template <class T> LANE_INLINE bool of(T a, T b) { return !(a == b); } };
struct f_ltu { template <class T> LANE_INLINE bool of(T a, T b) { return !(a >= b); } };
struct f_leu { template <class T> LANE_INLINE bool of(T a, T b) { return !(a > b); } };
struct f_gtu { template <class T> LANE_INLINE bool of(T a, T b) { return !(a <= b); } };
struct f_geu { template <class T> LANE_INLINE bool of(T a, T b) { return !(a < b); } };
struct f_num { template <class T> LANE_INLINE bool of(T a, T b) { return a == a && b == b; } };
struct f_nan { template <class T> LANE_INLINE bool of(T a, T b) { return a != a || b != b; } };

struct t_finite { template <class T> LANE_INLINE bool of(T a) { return body(a) < infinity_bits<T>; } };
struct t_infinite { template <class T> LANE_INLINE bool of(T a) { return body(a) == infinity_bits<T>; } };
struct t_number { template <class T> LANE_INLINE bool of(T a) { return a == a; } };
struct t_notanumber { template <class T> LANE_INLINE bool of(T a) { return a != a; } };
/// Zeros count as normal numbers.
struct t_normal { template <class T> LANE_INLINE bool of(T a) { return body(a) == 0 || (body(a) >= smallest_normal<T> && body(a) < infinity_bits<T>); } };
struct t_subnormal { template <class T> LANE_INLINE bool of(T a) { return body(a) != 0 && body(a) < smallest_normal<T>; } };
// clang-format on

template <class A, class F>
const inst* test(warp* w, const inst* i) {
  const A* a = from<A>(w, i->r[1]);
  u32 bits = 0;
  LANE_LOOP bits |= F::of(a[l]) ? 1u << l : 0u;
  set_predicate(w, i->r[0], bits);
  return i + 1;
}

/// Calls a library function for each lane: there is no vector loop, and inactive lanes compute nothing.
template <class F>
const inst* approximate(warp* w, const inst* i) {
  const float* a = from<float>(w, i->r[1]);
  float* d = to<float>(w, i->r[0]);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    d[l] = F::of(a[l]);
  }
  return i + 1;
}

template <class T>
void fill_type(step_table& t, element e) {
  const auto set = [&](op o, step s) { t.simple[static_cast<int>(o)][static_cast<int>(e)] = s; };
  set(op::neg, unary<T, T, f_neg>);
  set(op::abs, unary<T, T, f_abs>);
  set(op::flush, unary<T, T, f_flush>);
  set(op::saturate, unary<T, T, f_saturate>);
  set(op::relu, unary<T, T, f_relu>);
  set(op::sqrt, unary<T, T, f_sqrt>);
  set(op::rsqrt, unary<T, T, f_rsqrt>);
  set(op::rcp, unary<T, T, f_rcp>);
  set(op::round_even, unary<T, T, f_round_even>);
  set(op::round_zero, unary<T, T, f_round_zero>);
  set(op::round_down, unary<T, T, f_round_down>);
  set(op::round_up, unary<T, T, f_round_up>);
  set(op::add, binary<T, T, T, f_add>);
  set(op::sub, binary<T, T, T, f_sub>);
  set(op::mul, binary<T, T, T, f_mul>);
  set(op::div, binary<T, T, T, f_div>);
  set(op::min, binary<T, T, T, f_min>);
  set(op::max, binary<T, T, T, f_max>);
  set(op::min_nan, binary<T, T, T, f_min_nan>);
  set(op::max_nan, binary<T, T, T, f_max_nan>);
  set(op::copysign, binary<T, T, T, f_copysign>);
  set(op::fma, ternary<T, T, T, T, f_fma>);
  set(op::eq, compare<T, T, f_eq>);
  set(op::ne, compare<T, T, f_ne>);
  set(op::lt, compare<T, T, f_lt>);
  set(op::le, compare<T, T, f_le>);
  set(op::gt, compare<T, T, f_gt>);
  set(op::ge, compare<T, T, f_ge>);
  set(op::equ, compare<T, T, f_equ>);
  set(op::neu, compare<T, T, f_neu>);
  set(op::ltu, compare<T, T, f_ltu>);
  set(op::leu, compare<T, T, f_leu>);
  set(op::gtu, compare<T, T, f_gtu>);
  set(op::geu, compare<T, T, f_geu>);
  set(op::num, compare<T, T, f_num>);
  set(op::nan, compare<T, T, f_nan>);
  set(op::finite, test<T, t_finite>);
  set(op::infinite, test<T, t_infinite>);
  set(op::number, test<T, t_number>);
  set(op::notanumber, test<T, t_notanumber>);
  set(op::normal, test<T, t_normal>);
  set(op::subnormal, test<T, t_subnormal>);
}

// The steps between two of these run with another rounding mode. Steps are calls that the compiler cannot see
// through, so it cannot move arithmetic across them.
const inst* rounding(warp*, const inst* i) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  fesetround(modes[i->aux & 3]);
  return i + 1;
}

}  // namespace

void fill_float(step_table& t) {
  fill_type<float>(t, element::f32);
  fill_type<double>(t, element::f64);
  const auto set = [&](op o, step s) { t.simple[static_cast<int>(o)][static_cast<int>(element::f32)] = s; };
  set(op::ex2, approximate<f_ex2>);
  set(op::lg2, approximate<f_lg2>);
  set(op::sin, approximate<f_sin>);
  set(op::cos, approximate<f_cos>);
  set(op::tanh, approximate<f_tanh>);
  set(op::div_approx, binary<float, float, float, f_div_approx>);
  set(op::add_ftz, binary<float, float, float, flushed<f_add>>);
  set(op::sub_ftz, binary<float, float, float, flushed<f_sub>>);
  set(op::mul_ftz, binary<float, float, float, flushed<f_mul>>);
  set(op::fma_ftz, ternary<float, float, float, float, flushed<f_fma>>);
  t.rounding = rounding;
}

}  // namespace outboard::ptx::OUTBOARD_LANES
