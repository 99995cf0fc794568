// Integer and logic lane loops. Arithmetic is done unsigned: PTX wraps where C++ has undefined behaviour.
#include <type_traits>

#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ using u128 = unsigned __int128;
__extension__ using s128 = __int128;

template <class T>
using un = std::make_unsigned_t<T>;
template <class T>
inline constexpr int bits = sizeof(T) * 8;
template <class T>
inline constexpr bool is_signed_v = std::is_signed_v<T>;
template <class T>
inline constexpr T lowest = is_signed_v<T> ? static_cast<T>(un<T>{1} << (bits<T> - 1)) : T{0};
template <class T>
inline constexpr T highest = static_cast<T>(~lowest<T>);

// clang-format off
template <class T> struct wide_of;
template <> struct wide_of<u16> { using type = u32; };
template <> struct wide_of<s16> { using type = s32; };
template <> struct wide_of<u32> { using type = u64; };
template <> struct wide_of<s32> { using type = s64; };
template <> struct wide_of<u64> { using type = u128; };
template <> struct wide_of<s64> { using type = s128; };
template <class T> using wide = typename wide_of<T>::type;
/// Unsigned and at least as wide as int, so that promotion cannot make a signed product of two u16.
template <class T> using calc = std::conditional_t<(sizeof(T) < 4), u32, un<T>>;

struct f_mov { template <class T> LANE_INLINE T of(T a) { return a; } };
struct f_not { template <class T> LANE_INLINE T of(T a) { return static_cast<T>(~a); } };
struct f_neg { template <class T> LANE_INLINE T of(T a) { return static_cast<T>(calc<T>{0} - static_cast<calc<T>>(a)); } };
struct f_abs { template <class T> LANE_INLINE T of(T a) { return a < 0 ? f_neg::of(a) : a; } };
struct f_cnot { template <class T> LANE_INLINE T of(T a) { return a == 0 ? T{1} : T{0}; } };
struct f_popc { template <class T> LANE_INLINE u32 of(T a) { return static_cast<u32>(__builtin_popcountll(a)); } };
struct f_clz { template <class T> LANE_INLINE u32 of(T a) {
  return a == 0 ? bits<T> : static_cast<u32>(__builtin_clzll(a)) - (64 - bits<T>); } };
struct f_brev { template <class T> LANE_INLINE T of(T a) {
  u64 v = a;
  v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
  v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
  return static_cast<T>(__builtin_bswap64(v) >> (64 - bits<T>)); } };
struct f_bfind { template <class T> LANE_INLINE u32 of(T a) {
  const un<T> v = a < 0 ? static_cast<un<T>>(~a) : static_cast<un<T>>(a);
  return v == 0 ? all_lanes : 63u - static_cast<u32>(__builtin_clzll(v)); } };
struct f_bfind_shift { template <class T> LANE_INLINE u32 of(T a) {
  const u32 at = f_bfind::of(a);
  return at == all_lanes ? at : bits<T> - 1 - at; } };

struct f_add { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(static_cast<calc<T>>(a) + static_cast<calc<T>>(b)); } };
struct f_sub { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(static_cast<calc<T>>(a) - static_cast<calc<T>>(b)); } };
struct f_mul { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(static_cast<calc<T>>(a) * static_cast<calc<T>>(b)); } };
struct f_mul_hi { template <class T> LANE_INLINE T of(T a, T b) {
  return static_cast<T>(static_cast<wide<T>>(static_cast<wide<T>>(a) * static_cast<wide<T>>(b)) >> bits<T>); } };
struct f_mul_wide { template <class T> LANE_INLINE wide<T> of(T a, T b) { return static_cast<wide<T>>(a) * static_cast<wide<T>>(b); } };
struct f_div { template <class T> LANE_INLINE T of(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (is_signed_v<T>) { if (b == -1) return f_neg::of(a); }
  return static_cast<T>(a / b); } };
struct f_rem { template <class T> LANE_INLINE T of(T a, T b) {
  if (b == 0) return static_cast<T>(-1);  // the ISA leaves it open; this is what GPUs give
  if constexpr (is_signed_v<T>) { if (b == -1) return 0; }
  return static_cast<T>(a % b); } };
struct f_min { template <class T> LANE_INLINE T of(T a, T b) { return a < b ? a : b; } };
struct f_max { template <class T> LANE_INLINE T of(T a, T b) { return a > b ? a : b; } };
struct f_and { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(a & b); } };
struct f_or { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(a | b); } };
struct f_xor { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(a ^ b); } };
struct f_shl { template <class T> LANE_INLINE T of(T a, u32 b) {
  return b >= bits<T> ? T{0} : static_cast<T>(static_cast<calc<T>>(a) << (b & (bits<T> - 1))); } };
struct f_shr { template <class T> LANE_INLINE T of(T a, u32 b) {
  if constexpr (is_signed_v<T>) return static_cast<T>(a >> (b >= bits<T> ? bits<T> - 1 : b));
  else return b >= bits<T> ? T{0} : static_cast<T>(a >> (b & (bits<T> - 1))); } };
struct f_add_sat { template <class T> LANE_INLINE T of(T a, T b) {
  const s64 v = static_cast<s64>(a) + static_cast<s64>(b);
  return static_cast<T>(v < lowest<T> ? lowest<T> : v > highest<T> ? highest<T> : v); } };
struct f_sub_sat { template <class T> LANE_INLINE T of(T a, T b) {
  const s64 v = static_cast<s64>(a) - static_cast<s64>(b);
  return static_cast<T>(v < lowest<T> ? lowest<T> : v > highest<T> ? highest<T> : v); } };
struct f_bmsk_clamp { LANE_INLINE u32 of(u32 a, u32 b) {
  const u64 ones = b >= 32 ? 0xffffffffu : (u64{1} << b) - 1;
  return a >= 32 ? 0u : static_cast<u32>(ones << a); } };
struct f_bmsk_wrap { LANE_INLINE u32 of(u32 a, u32 b) { return ((1u << (b & 31)) - 1) << (a & 31); } };

struct f_mad { template <class T> LANE_INLINE T of(T a, T b, T c) { return f_add::of(f_mul::of(a, b), c); } };
struct f_mad_hi { template <class T> LANE_INLINE T of(T a, T b, T c) { return f_add::of(f_mul_hi::of(a, b), c); } };
struct f_mad_hi_sat { LANE_INLINE s32 of(s32 a, s32 b, s32 c) { return f_add_sat::of(f_mul_hi::of(a, b), c); } };
struct f_mad_wide { template <class T> LANE_INLINE wide<T> of(T a, T b, wide<T> c) { return f_add::of(f_mul_wide::of(a, b), c); } };
template <class T> LANE_INLINE T low24(T a) { return is_signed_v<T> ? static_cast<T>(static_cast<T>(static_cast<u32>(a) << 8) >> 8) : static_cast<T>(a & 0xffffff); }
struct f_mul24 { template <class T> LANE_INLINE T of(T a, T b) { return f_mul::of(low24(a), low24(b)); } };
struct f_mul24_hi { template <class T> LANE_INLINE T of(T a, T b) { return static_cast<T>(f_mul_wide::of(low24(a), low24(b)) >> 16); } };
struct f_mad24 { template <class T> LANE_INLINE T of(T a, T b, T c) { return f_add::of(f_mul24::of(a, b), c); } };
struct f_sad { template <class T> LANE_INLINE T of(T a, T b, T c) { return f_add::of(c, a < b ? f_sub::of(b, a) : f_sub::of(a, b)); } };
struct f_slct { template <class T> LANE_INLINE T of(T a, T b, s32 c) { return c >= 0 ? a : b; } };
struct f_slct_f32 { template <class T> LANE_INLINE T of(T a, T b, float c) { return c >= 0 ? a : b; } };
/// Position and length of a bit field: 8 bits count. GPUs build the 64-bit forms from other instructions, and
/// look at all 32 bits there.
template <class T> LANE_INLINE u32 field_operand(u32 v) { return sizeof(T) == 8 ? (v < 256 ? v : 255) : v & 255; }
struct f_bfe { template <class T> LANE_INLINE T of(T a, u32 b, u32 c) {
  const u32 at = field_operand<T>(b), length = field_operand<T>(c), most = bits<T>;
  const u32 top = at + length - 1 < most - 1 ? at + length - 1 : most - 1;
  // Bits above the field take its sign, also where the field reaches beyond `a`.
  const un<T> fill = is_signed_v<T> && length != 0 && (static_cast<un<T>>(a) >> top & 1) ? static_cast<un<T>>(~un<T>{0}) : un<T>{0};
  const u32 kept = at >= most ? 0 : most - at < length ? most - at : length;
  const un<T> ones = kept >= most ? static_cast<un<T>>(~un<T>{0}) : static_cast<un<T>>((un<T>{1} << kept) - 1);
  return static_cast<T>((static_cast<un<T>>(a) >> (at & (most - 1)) & ones) | (fill & static_cast<un<T>>(~ones))); } };
struct f_dp4a_uu { LANE_INLINE u32 of(u32 a, u32 b, u32 c) {
  for (int n = 0; n < 32; n += 8) c += (a >> n & 255) * (b >> n & 255);
  return c; } };
struct f_dp4a_ss { LANE_INLINE s32 of(s32 a, s32 b, s32 c) {
  u32 sum = static_cast<u32>(c);
  for (int n = 0; n < 32; n += 8) {
    sum += static_cast<u32>(static_cast<signed char>(a >> n) * static_cast<signed char>(b >> n)); }
  return static_cast<s32>(sum); } };
struct f_prmt { LANE_INLINE u32 of(u32 a, u32 b, u32 c) {
  const u64 both = a | static_cast<u64>(b) << 32;
  u32 d = 0;
  for (int n = 0; n < 4; ++n) {
    const u32 select = c >> (4 * n) & 15;
    u32 byte = static_cast<u32>(both >> (8 * (select & 7))) & 255;
    if (select & 8) byte = byte & 128 ? 255 : 0;
    d |= byte << (8 * n);
  }
  return d; } };
struct f_shf_l_wrap { LANE_INLINE u32 of(u32 a, u32 b, u32 c) { return static_cast<u32>((a | static_cast<u64>(b) << 32) << (c & 31) >> 32); } };
struct f_shf_l_clamp { LANE_INLINE u32 of(u32 a, u32 b, u32 c) { return c >= 32 ? a : f_shf_l_wrap::of(a, b, c); } };
struct f_shf_r_wrap { LANE_INLINE u32 of(u32 a, u32 b, u32 c) { return static_cast<u32>((a | static_cast<u64>(b) << 32) >> (c & 31)); } };
struct f_shf_r_clamp { LANE_INLINE u32 of(u32 a, u32 b, u32 c) { return c >= 32 ? b : f_shf_r_wrap::of(a, b, c); } };

struct f_eq { template <class T> LANE_INLINE bool of(T a, T b) { return a == b; } };
struct f_ne { template <class T> LANE_INLINE bool of(T a, T b) { return a != b; } };
struct f_lt { template <class T> LANE_INLINE bool of(T a, T b) { return a < b; } };
struct f_le { template <class T> LANE_INLINE bool of(T a, T b) { return a <= b; } };
struct f_gt { template <class T> LANE_INLINE bool of(T a, T b) { return a > b; } };
struct f_ge { template <class T> LANE_INLINE bool of(T a, T b) { return a >= b; } };
// clang-format on

template <class T>
const inst* bfi(warp* w, const inst* i) {
  const T *a = from<T>(w, i->r[1]), *b = from<T>(w, i->r[2]);
  const u32 *c = from<u32>(w, i->r[3]), *e = from<u32>(w, i->r[4]);
  assign(
      w, to<T>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        const u32 at = field_operand<T>(c[l]), length = field_operand<T>(e[l]);
        if (at >= bits<T> || length == 0) return b[l];
        const T ones = length >= bits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
        const T field = static_cast<T>(ones << at);
        return static_cast<T>((b[l] & static_cast<T>(~field)) | ((a[l] << at) & field));
      });
  return i + 1;
}

template <class T>
const inst* selp(warp* w, const inst* i) {
  const T *a = from<T>(w, i->r[1]), *b = from<T>(w, i->r[2]);
  const u32 p = predicate(w, i->r[3]);
  assign(
      w,
      to<T>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return p & (1u << l) ? a[l] : b[l]; });
  return i + 1;
}

const inst* lop3(warp* w, const inst* i) {
  const u32 *a = from<u32>(w, i->r[1]), *b = from<u32>(w, i->r[2]), *c = from<u32>(w, i->r[3]);
  const u32 table = i->aux;
  assign(
      w, to<u32>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        const u32 x = a[l], y = b[l], z = c[l];
        u32 d = 0;
        d |= table & 1 ? ~x & ~y & ~z : 0;
        d |= table & 2 ? ~x & ~y & z : 0;
        d |= table & 4 ? ~x & y & ~z : 0;
        d |= table & 8 ? ~x & y & z : 0;
        d |= table & 16 ? x & ~y & ~z : 0;
        d |= table & 32 ? x & ~y & z : 0;
        d |= table & 64 ? x & y & ~z : 0;
        d |= table & 128 ? x & y & z : 0;
        return d;
      });
  return i + 1;
}

/// A subtraction is a + ~b + carry, as in the machine: its carry-out is 1 when there was NO borrow. The
/// manual says "borrow", but nvcc's 128-bit division reads the carry of subc.cc with addc and relies on this.
/// add.cc, addc, addc.cc, sub.cc ...: r[3] is the carry predicate; `With` reads it. aux != 0: it is written.
template <class T, bool Subtract, bool With>
const inst* carry(warp* w, const inst* i) {
  const T *a = from<T>(w, i->r[1]), *b = from<T>(w, i->r[2]);
  T* d = to<T>(w, i->r[0]);
  const u32 in = With ? predicate(w, i->r[3]) : 0;
  u32 out = 0;
  T v[warp_lanes];
  LANE_LOOP {
    const T x = a[l], y = b[l], k = Subtract && With ? ~in >> l & 1 : in >> l & 1;
    T s, r;
    bool over;
    if constexpr (Subtract) {
      over = __builtin_sub_overflow(x, y, &s);
      over |= __builtin_sub_overflow(s, k, &r);
    } else {
      over = __builtin_add_overflow(x, y, &s);
      over |= __builtin_add_overflow(s, k, &r);
    }
    v[l] = r;
    out |= over != Subtract ? 1u << l : 0u;
  }
  const T* result = v;
  assign(
      w, d, [=](int l) __attribute__((always_inline)) { return result[l]; });
  if (i->aux) set_predicate(w, i->r[3], out);
  return i + 1;
}

template <class T>
inline constexpr element element_of = element::count;
template <>
inline constexpr element element_of<u16> = element::u16;
template <>
inline constexpr element element_of<u32> = element::u32;
template <>
inline constexpr element element_of<u64> = element::u64;
template <>
inline constexpr element element_of<s16> = element::s16;
template <>
inline constexpr element element_of<s32> = element::s32;
template <>
inline constexpr element element_of<s64> = element::s64;

template <class T>
step& slot(step_table& t, op o) {
  return t.simple[static_cast<int>(o)][static_cast<int>(element_of<T>)];
}

/// Steps that exist for both signed and unsigned types.
template <class T>
void fill_common(step_table& t) {
  const auto two = [&](op o, step s) { slot<T>(t, o) = s; };
  two(op::add, binary<T, T, T, f_add>);
  two(op::sub, binary<T, T, T, f_sub>);
  two(op::mul, binary<T, T, T, f_mul>);
  two(op::mul_hi, binary<T, T, T, f_mul_hi>);
  two(op::div, binary<T, T, T, f_div>);
  two(op::rem, binary<T, T, T, f_rem>);
  two(op::min, binary<T, T, T, f_min>);
  two(op::max, binary<T, T, T, f_max>);
  two(op::shr, binary<T, T, u32, f_shr>);
  two(op::mad, ternary<T, T, T, T, f_mad>);
  two(op::mad_hi, ternary<T, T, T, T, f_mad_hi>);
  two(op::sad, ternary<T, T, T, T, f_sad>);
  two(op::eq, compare<T, T, f_eq>);
  two(op::ne, compare<T, T, f_ne>);
  two(op::lt, compare<T, T, f_lt>);
  two(op::le, compare<T, T, f_le>);
  two(op::gt, compare<T, T, f_gt>);
  two(op::ge, compare<T, T, f_ge>);
  if constexpr (sizeof(T) < 8) {
    two(op::mul_wide, binary<wide<T>, T, T, f_mul_wide>);
    two(op::mad_wide, ternary<wide<T>, T, T, wide<T>, f_mad_wide>);
  }
  if constexpr (sizeof(T) > 2) {
    two(op::bfind, unary<u32, T, f_bfind>);
    two(op::bfind_shift, unary<u32, T, f_bfind_shift>);
    two(op::bfe, ternary<T, T, u32, u32, f_bfe>);
  }
  if constexpr (sizeof(T) == 4) {
    two(op::mul24, binary<T, T, T, f_mul24>);
    two(op::mul24_hi, binary<T, T, T, f_mul24_hi>);
    two(op::mad24, ternary<T, T, T, T, f_mad24>);
  }
}

template <class T>
void fill_signed(step_table& t) {
  fill_common<T>(t);
  slot<T>(t, op::neg) = unary<T, T, f_neg>;
  slot<T>(t, op::abs) = unary<T, T, f_abs>;
}

/// Untyped (.b16 .b32 .b64) instructions are filed under the unsigned type.
template <class T>
void fill_unsigned(step_table& t) {
  fill_common<T>(t);
  slot<T>(t, op::mov) = unary<T, T, f_mov>;
  slot<T>(t, op::not_) = unary<T, T, f_not>;
  slot<T>(t, op::cnot) = unary<T, T, f_cnot>;
  slot<T>(t, op::and_) = binary<T, T, T, f_and>;
  slot<T>(t, op::or_) = binary<T, T, T, f_or>;
  slot<T>(t, op::xor_) = binary<T, T, T, f_xor>;
  slot<T>(t, op::shl) = binary<T, T, u32, f_shl>;
  slot<T>(t, op::selp) = selp<T>;
  slot<T>(t, op::slct) = ternary<T, T, T, s32, f_slct>;
  slot<T>(t, op::slct_f32) = ternary<T, T, T, float, f_slct_f32>;
  if constexpr (sizeof(T) > 2) {
    slot<T>(t, op::popc) = unary<u32, T, f_popc>;
    slot<T>(t, op::clz) = unary<u32, T, f_clz>;
    slot<T>(t, op::brev) = unary<T, T, f_brev>;
    slot<T>(t, op::bfi) = bfi<T>;
    slot<T>(t, op::add_carry) = carry<T, false, false>;
    slot<T>(t, op::sub_carry) = carry<T, true, false>;
    slot<T>(t, op::add_with) = carry<T, false, true>;
    slot<T>(t, op::sub_with) = carry<T, true, true>;
  }
}

}  // namespace

void fill_integer(step_table& t) {
  fill_unsigned<u16>(t);
  fill_unsigned<u32>(t);
  fill_unsigned<u64>(t);
  fill_signed<s16>(t);
  fill_signed<s32>(t);
  fill_signed<s64>(t);
  slot<s32>(t, op::add_sat) = binary<s32, s32, s32, f_add_sat>;
  slot<s32>(t, op::sub_sat) = binary<s32, s32, s32, f_sub_sat>;
  slot<s32>(t, op::mad_hi_sat) = ternary<s32, s32, s32, s32, f_mad_hi_sat>;
  slot<u32>(t, op::bmsk_clamp) = binary<u32, u32, u32, f_bmsk_clamp>;
  slot<u32>(t, op::bmsk_wrap) = binary<u32, u32, u32, f_bmsk_wrap>;
  slot<u32>(t, op::prmt) = ternary<u32, u32, u32, u32, f_prmt>;
  slot<u32>(t, op::shf_l_wrap) = ternary<u32, u32, u32, u32, f_shf_l_wrap>;
  slot<u32>(t, op::shf_l_clamp) = ternary<u32, u32, u32, u32, f_shf_l_clamp>;
  slot<u32>(t, op::shf_r_wrap) = ternary<u32, u32, u32, u32, f_shf_r_wrap>;
  slot<u32>(t, op::shf_r_clamp) = ternary<u32, u32, u32, u32, f_shf_r_clamp>;
  slot<u32>(t, op::dp4a) = ternary<u32, u32, u32, u32, f_dp4a_uu>;
  slot<s32>(t, op::dp4a) = ternary<s32, s32, s32, s32, f_dp4a_ss>;
  slot<u32>(t, op::lop3) = lop3;
}

}  // namespace outboard::ptx::OUTBOARD_LANES
