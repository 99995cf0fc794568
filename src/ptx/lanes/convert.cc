// cvt lane loops, [to][from]. Values of 8 bits live in 16-bit registers: loads of them take the low byte,
// stores extend. Rounding to an integral value and directed rounding are separate steps around these (see
// decode).
#include <type_traits>

#include "ptx/lanes/half.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u64 = std::uint64_t;

/// A PTX type: its value type and the register type it is kept in.
template <class Value, class Register>
struct kept {
  using value = Value;
  using reg = Register;
  LANE_INLINE Value get(Register r) { return static_cast<Value>(r); }
  LANE_INLINE Register put(Value v) { return static_cast<Register>(v); }
};
using e_u8 = kept<std::uint8_t, std::uint16_t>;
using e_u16 = kept<std::uint16_t, std::uint16_t>;
using e_u32 = kept<std::uint32_t, std::uint32_t>;
using e_u64 = kept<std::uint64_t, std::uint64_t>;
using e_s8 = kept<std::int8_t, std::int16_t>;
using e_s16 = kept<std::int16_t, std::int16_t>;
using e_s32 = kept<std::int32_t, std::int32_t>;
using e_s64 = kept<std::int64_t, std::int64_t>;
using e_f32 = kept<float, float>;
using e_f64 = kept<double, double>;

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;

template <class I>
inline constexpr I lowest = std::is_signed_v<I> ? static_cast<I>(u64{1} << (sizeof(I) * 8 - 1)) : I{0};
template <class I>
inline constexpr I highest = static_cast<I>(~lowest<I>);

/// Truncates; values out of range become the nearest one. The ISA says that NaN becomes 0, but where 64 bits
/// are involved GPUs give the number that has only the highest bit.
template <class I, class F>
LANE_INLINE I to_integer(F v) {
  // highest<I> itself may not be representable: compare with the power of two above it.
  constexpr F above = static_cast<F>(u64{1} << (sizeof(I) * 8 - (std::is_signed_v<I> ? 2 : 1))) * 2;
  constexpr F below = static_cast<F>(lowest<I>);
  constexpr I nan = sizeof(I) == 8 || sizeof(F) == 8 ? static_cast<I>(u64{1} << (sizeof(I) * 8 - 1)) : I{0};
  const bool fits = v > (below - 1 == below ? below : below - 1) && v < above;
  const I inside = static_cast<I>(fits ? v : F{0});
  return fits ? inside : v >= above ? highest<I> : v <= below ? lowest<I> : nan;
}

template <class I, class J>
LANE_INLINE I clamp_integer(J v) {
  if constexpr (std::is_signed_v<J>) {
    const auto x = static_cast<std::int64_t>(v);
    if constexpr (sizeof(I) == 8)
      return std::is_signed_v<I> ? static_cast<I>(x) : x < 0 ? I{0} : static_cast<I>(x);
    const auto low = static_cast<std::int64_t>(lowest<I>), high = static_cast<std::int64_t>(highest<I>);
    return static_cast<I>(x < low ? low : x > high ? high : x);
  } else {
    const auto x = static_cast<u64>(v), high = static_cast<u64>(highest<I>);
    return static_cast<I>(x > high ? high : x);
  }
}

/// Converts by way of a signed number whose lowest bit is sticky, so that the rounding is right. Compilers
/// may convert in two parts whose sum is -0 instead of 0 when rounding down, so the sign is cleared at the
/// end.
template <class F>
LANE_INLINE F from_unsigned(u64 v) {
  const bool large = static_cast<std::int64_t>(v) < 0;
  const F part = static_cast<F>(static_cast<std::int64_t>(large ? v >> 1 | (v & 1) : v));
  const F whole = large ? part + part : part;
  if constexpr (sizeof(F) == 4) return __builtin_fabsf(whole);
  return __builtin_fabs(whole);
}

template <class D, class S>
struct f_plain {
  LANE_INLINE typename D::reg of(typename S::reg r) {
    const auto v = S::get(r);
    using to = typename D::value;
    if constexpr (is_real<typename S::value>) {
      if constexpr (is_real<to>) {
        return D::put(static_cast<to>(v));
      } else {
        return D::put(to_integer<to>(v));
      }
    } else if constexpr (is_real<to> && std::is_same_v<typename S::value, u64>) {
      return D::put(from_unsigned<to>(v));
    } else {
      return D::put(static_cast<to>(v));
    }
  }
};
template <class D, class S>
struct f_clamped {
  LANE_INLINE typename D::reg of(typename S::reg r) {
    return D::put(clamp_integer<typename D::value>(S::get(r)));
  }
};

struct f_half_to_float {
  LANE_INLINE float of(std::uint16_t v) {
    return (v & 0x7fff) > 0x7c00 ? as_float(0x7fffffff) : half_to_float(v);
  }
};
struct f_bfloat_to_float {
  LANE_INLINE float of(std::uint16_t v) { return bfloat_to_float(v); }
};

/// aux: rounding mode.
template <class F>
const inst* to_half(warp* w, const inst* i) {
  const F* a = from<F>(w, i->r[1]);
  const std::uint32_t mode = i->aux;
  auto* d = to<std::uint16_t>(w, i->r[0]);
  if constexpr (sizeof(F) == 4) {
    if (mode == 0) {
      assign(
          w, d, [=](int l) __attribute__((always_inline)) { return float_to_half(a[l]); });
      return i + 1;
    }
  }
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    d[l] = double_to_half(a[l], mode);
    // A NaN from an f64 keeps its sign.
    if (sizeof(F) == 8 && a[l] != a[l]) d[l] = __builtin_signbit(a[l]) ? 0xfe00 : 0x7e00;
  }
  return i + 1;
}

const inst* to_bfloat(warp* w, const inst* i) {
  const float* a = from<float>(w, i->r[1]);
  const std::uint32_t mode = i->aux;
  assign(
      w, to<std::uint16_t>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        return float_to_bfloat(a[l], mode);
      });
  return i + 1;
}

template <class D, class S>
void set(step_table& t, element d, element s) {
  t.convert[static_cast<int>(d)][static_cast<int>(s)] =
      unary<typename D::reg, typename S::reg, f_plain<D, S>>;
  if constexpr (!is_real<typename D::value> && !is_real<typename S::value>) {
    t.convert_sat[static_cast<int>(d)][static_cast<int>(s)] =
        unary<typename D::reg, typename S::reg, f_clamped<D, S>>;
  }
}

template <class D>
void fill_to(step_table& t, element d) {
  set<D, e_u8>(t, d, element::u8);
  set<D, e_u16>(t, d, element::u16);
  set<D, e_u32>(t, d, element::u32);
  set<D, e_u64>(t, d, element::u64);
  set<D, e_s8>(t, d, element::s8);
  set<D, e_s16>(t, d, element::s16);
  set<D, e_s32>(t, d, element::s32);
  set<D, e_s64>(t, d, element::s64);
  set<D, e_f32>(t, d, element::f32);
  set<D, e_f64>(t, d, element::f64);
}

}  // namespace

void fill_convert(step_table& t) {
  fill_to<e_u8>(t, element::u8);
  fill_to<e_u16>(t, element::u16);
  fill_to<e_u32>(t, element::u32);
  fill_to<e_u64>(t, element::u64);
  fill_to<e_s8>(t, element::s8);
  fill_to<e_s16>(t, element::s16);
  fill_to<e_s32>(t, element::s32);
  fill_to<e_s64>(t, element::s64);
  fill_to<e_f32>(t, element::f32);
  fill_to<e_f64>(t, element::f64);
  const auto other = [&](element d, element s, step run) {
    t.convert[static_cast<int>(d)][static_cast<int>(s)] = run;
  };
  other(element::f32, element::f16, unary<float, std::uint16_t, f_half_to_float>);
  other(element::f32, element::bf16, unary<float, std::uint16_t, f_bfloat_to_float>);
  other(element::f16, element::f32, to_half<float>);
  other(element::f16, element::f64, to_half<double>);
  other(element::bf16, element::f32, to_bfloat);
}

}  // namespace outboard::ptx::OUTBOARD_LANES
