#include "ptx/run/plain_integer.hh"

#include <algorithm>

#include "ptx/run/plain.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

__extension__ using s128 = __int128;

template <class F>
const inst* three(warp* w, const inst* i, F f) {
  each_lane(w, [&](int l) {
    set_lane<u32>(
        w, i->r[0], l,
        f(lane_value<u32>(w, i->r[1], l), lane_value<u32>(w, i->r[2], l), lane_value<u32>(w, i->r[3], l)));
  });
  return i + 1;
}

u32 byte_of(u32 a, u32 b, u32 n) {
  const u64 both = a | u64{b} << 32;
  return static_cast<u32>(both >> (8 * (n & 7))) & 255;
}

/// The table of prmt in the ISA: which byte of {b, a} goes to byte n of the result.
template <bits3 Mode>
const inst* permute(warp* w, const inst* i) {
  return three(w, i, [](u32 a, u32 b, u32 c) {
    u32 d = 0;
    const u32 k = c & 3;
    for (u32 n = 0; n < 4; ++n) {
      const u32 from = Mode == bits3::prmt_f4e   ? k + n
                       : Mode == bits3::prmt_b4e ? (k - n) & 7
                       : Mode == bits3::prmt_rc8 ? k
                       : Mode == bits3::prmt_ecl ? std::max(k, n)
                       : Mode == bits3::prmt_ecr ? std::min(k, n)
                                                 : (k & 1) * 2 + (n & 1);
      d |= byte_of(a, b, from) << (8 * n);
    }
    return d;
  });
}

s64 field(u32 value, int first, int bits, bool sign) {
  const u64 part = bits == 32 ? value : (value >> first) & ((u32{1} << bits) - 1);
  if (!sign) return static_cast<s64>(part);
  return static_cast<s64>(part << (64 - bits)) >> (64 - bits);
}

template <int Terms>
const inst* dot(warp* w, const inst* i) {
  const u32 mode = i->aux;
  return three(w, i, [&](u32 a, u32 b, u32 c) {
    s64 sum = 0;
    constexpr int a_bits = 32 / Terms;
    for (int n = 0; n < Terms; ++n) {
      const int b_first = n * 8 + (Terms == 2 && (mode & 4) ? 16 : 0);
      sum += field(a, n * a_bits, a_bits, mode & 1) * field(b, b_first, 8, mode & 2);
    }
    return c + static_cast<u32>(sum);
  });
}

const inst* sign_or_zero_extend(warp* w, const inst* i) {
  const u32 mode = i->aux;
  return three(w, i, [&](u32 a, u32 b, u32) {
    const u32 width = mode & 2 ? b & 31 : std::min(b, u32{32});
    if (width == 32) return a;
    if (width == 0) return u32{0};
    return static_cast<u32>(field(a, 0, static_cast<int>(width), mode & 1));
  });
}

/// The |offset|-th set bit of a at or above (below) position base.
u32 find_nth_set(u32 mask, u32 base, s32 offset) {
  if (offset == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
  const s32 step = offset < 0 ? -1 : 1;
  s64 left = offset < 0 ? -s64{offset} : offset;
  for (s64 at = base; at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) && --left == 0) return static_cast<u32>(at);
  }
  return ~0u;
}

const inst* fns(warp* w, const inst* i) {
  return three(w, i, [](u32 a, u32 b, u32 c) { return find_nth_set(a, b, static_cast<s32>(c)); });
}

const inst* mad24_hi(warp* w, const inst* i) {
  const u32 mode = i->aux;
  return three(w, i, [&](u32 a, u32 b, u32 c) {
    const s64 product = field(a, 0, 24, mode & 1) * field(b, 0, 24, mode & 1);
    const u32 high = static_cast<u32>(static_cast<u64>(product) >> 16);
    if (!(mode & 2)) return high + c;
    const s64 sum = s64{static_cast<s32>(high)} + static_cast<s32>(c);
    return static_cast<u32>(std::clamp<s64>(sum, INT32_MIN, INT32_MAX));
  });
}

// ---- halfword pairs

template <pair16 What>
const inst* pairs(warp* w, const inst* i) {
  const bool sign = i->aux & 1, extra = i->aux & 2;
  each_lane(w, [&](int l) {
    const u32 a = lane_value<u32>(w, i->r[1], l), b = lane_value<u32>(w, i->r[2], l);
    u32 d = 0;
    for (int n = 0; n < 32; n += 16) {
      const s64 x = field(a, n, 16, sign), y = field(b, n, 16, sign);
      s64 v = What == pair16::add   ? x + y
              : What == pair16::sub ? x - y
              : What == pair16::min ? std::min(x, y)
              : What == pair16::max ? std::max(x, y)
                                    : -x;
      const bool arithmetic = What == pair16::add || What == pair16::sub;
      if (extra && arithmetic) v = std::clamp<s64>(v, sign ? INT16_MIN : 0, sign ? INT16_MAX : UINT16_MAX);
      if (extra && !arithmetic) v = std::max<s64>(v, 0);
      d |= (static_cast<u32>(v) & 0xffff) << n;
    }
    set_lane<u32>(w, i->r[0], l, d);
  });
  return i + 1;
}

// ---- video

s64 clamp_to(s64 v, int bits, bool sign) {
  const s64 high = sign ? (s64{1} << (bits - 1)) - 1 : (s64{1} << bits) - 1;
  return std::clamp<s64>(v, sign ? -high - 1 : 0, high);
}

bool holds(std::uint8_t compare, s64 a, s64 b) {
  switch (compare) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

s64 combine(const video_step& v, s64 a, s64 b) {
  switch (v.what) {
    case video::add:
      return a + b;
    case video::sub:
      return a - b;
    case video::absdiff:
      return a > b ? a - b : b - a;
    case video::min:
      return std::min(a, b);
    case video::max:
      return std::max(a, b);
    case video::avrg:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case video::shl:
    case video::shr: {
      const s64 by = v.wrap ? b & 31 : std::clamp<s64>(b, 0, 32);
      return v.what == video::shl ? static_cast<s64>(static_cast<u64>(a) << by) : a >> by;
    }
    case video::set:
      return holds(v.compare, a, b);
    default:
      return 0;  // vmad needs more than 64 bits
  }
}

u32 scalar(const video_step& v, u32 a, u32 b, u32 c) {
  const s64 x = field(a, v.a_first, v.a_bits, v.a_signed), y = field(b, v.b_first, v.b_bits, v.b_signed);
  const s64 z = v.d_signed ? s64{static_cast<s32>(c)} : s64{c};
  s64 t = combine(v, x, y);
  if (v.what == video::mad) {
    // Unsigned 32-bit factors fill the 64 bits: the sum is of 65, of which only what the scale keeps matters.
    s128 wide = static_cast<s128>(x) * y;
    if (v.negate_a != v.negate_b) wide = -wide;
    wide += v.negate_c ? -static_cast<s128>(z) : static_cast<s128>(z);
    wide += v.plus_one;
    wide >>= v.scale;
    const s128 high = v.d_signed ? INT32_MAX : UINT32_MAX, low = v.d_signed ? INT32_MIN : 0;
    if (v.saturate) wide = wide > high ? high : wide < low ? low : wide;
    return static_cast<u32>(wide);
  }
  if (v.saturate && v.what != video::set) t = clamp_to(t, v.d_bits, v.d_signed);
  const auto low = static_cast<u32>(t);
  switch (v.merge) {
    case video_merge::add:
      return low + c;
    case video_merge::min:
      return static_cast<u32>(std::min(v.d_signed ? s64{static_cast<s32>(low)} : s64{low}, z));
    case video_merge::max:
      return static_cast<u32>(std::max(v.d_signed ? s64{static_cast<s32>(low)} : s64{low}, z));
    case video_merge::part: {
      const u32 ones = v.d_bits == 32 ? ~0u : ((u32{1} << v.d_bits) - 1) << v.d_first;
      return (low << v.d_first & ones) | (c & ~ones);
    }
    default:
      return low;
  }
}

u32 packed(const video_step& v, u32 a, u32 b, u32 c) {
  const int bits = 32 / v.parts;
  u32 merged = c, sum = c;
  for (int n = 0; n < v.parts; ++n) {
    if (!(v.mask >> n & 1)) continue;
    const auto part = [&](std::uint8_t from, bool sign) {
      const bool low = from < v.parts;
      return field(low ? a : b, (low ? from : from - v.parts) * bits, bits, sign);
    };
    s64 t = combine(v, part(v.a_select[n], v.a_signed), part(v.b_select[n], v.b_signed));
    if (v.saturate && v.what != video::set) t = clamp_to(t, bits, v.d_signed);
    const u32 ones = ((u32{1} << bits) - 1) << (n * bits);
    merged = (merged & ~ones) | (static_cast<u32>(t) << (n * bits) & ones);
    sum += static_cast<u32>(t);
  }
  return v.merge == video_merge::add ? sum : merged;
}

}  // namespace

const inst* video_run(warp* w, const inst* i) {
  const auto& v = *reinterpret_cast<const video_step*>(i->imm);
  return three(w, i,
               [&](u32 a, u32 b, u32 c) { return v.parts == 1 ? scalar(v, a, b, c) : packed(v, a, b, c); });
}

step bits3_step(bits3 which) {
  static constexpr step all[] = {permute<bits3::prmt_f4e>,
                                 permute<bits3::prmt_b4e>,
                                 permute<bits3::prmt_rc8>,
                                 permute<bits3::prmt_ecl>,
                                 permute<bits3::prmt_ecr>,
                                 permute<bits3::prmt_rc16>,
                                 dot<2>,
                                 dot<4>,
                                 sign_or_zero_extend,
                                 fns,
                                 mad24_hi};
  return all[static_cast<int>(which)];
}

step pair16_step(pair16 which) {
  static constexpr step all[] = {pairs<pair16::add>, pairs<pair16::sub>, pairs<pair16::min>,
                                 pairs<pair16::max>, pairs<pair16::neg>};
  return all[static_cast<int>(which)];
}

}  // namespace outboard::ptx
