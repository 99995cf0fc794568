#include "ptx/run/plain_convert.hh"

#include <algorithm>

#include "ptx/run/plain.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct format {
  int exponent_bits, mantissa_bits, bias;
  u32 largest;    ///< largest number, without sign
  bool infinite;  ///< largest + 1 is infinity
  u32 nan;        ///< what a NaN becomes; 0: the largest number
};

const format& format_of(narrow n) {
  static constexpr format all[] = {
      {5, 10, 15, 0x7bff, true, 0x7fff},
      {8, 7, 127, 0x7f7f, true, 0x7fff},
      {4, 3, 7, 0x7e, false, 0x7f},
      {5, 2, 15, 0x7b, true, 0x7f},
      {8, 10, 127, 0x3fbff, true, 0x3ffff},
      {2, 3, 1, 0x1f, false, 0},
      {3, 2, 3, 0x1f, false, 0},
      {2, 1, 1, 0x7, false, 0},
  };
  return all[static_cast<int>(n)];
}

/// magnitude * 2^exponent, exact.
struct exact {
  bool negative = false, nan = false, infinite = false;
  u64 magnitude = 0;
  int exponent = 0;
};

exact exact_of(double v) {
  const auto bits = std::bit_cast<u64>(v);
  exact e;
  e.negative = bits >> 63;
  const auto biased = static_cast<int>(bits >> 52 & 0x7ff);
  const u64 mantissa = bits & 0xfffffffffffff;
  if (biased == 0x7ff) {
    (mantissa != 0 ? e.nan : e.infinite) = true;
    return e;
  }
  e.magnitude = biased == 0 ? mantissa : mantissa | u64{1} << 52;
  e.exponent = (biased == 0 ? 1 : biased) - 1075;
  return e;
}

u32 round_to(const exact& e, const narrow_form& form) {
  const format& f = format_of(form.to);
  const u32 sign = (e.negative ? 1u : 0u) << (f.exponent_bits + f.mantissa_bits);
  if (e.nan) return f.nan != 0 ? f.nan : f.largest;
  if (form.relu && e.negative) return 0;
  const bool outward =
      (form.mode == rounding::up && !e.negative) || (form.mode == rounding::down && e.negative);
  const auto too_large = [&] {
    if (form.finite || !f.infinite) return sign | f.largest;
    const bool inward =
        !outward && form.mode != rounding::nearest && form.mode != rounding::away && !e.infinite;
    return sign | (inward ? f.largest : f.largest + 1);
  };
  if (e.infinite) return too_large();
  if (e.magnitude == 0) return sign;
  // Position of the leading bit gives the exponent; below the smallest normal one the grid stays as it is.
  const int leading = 63 - std::countl_zero(e.magnitude);
  const int exponent = std::max(leading + e.exponent, 1 - f.bias);
  const int drop = exponent - f.mantissa_bits - e.exponent;  // bits of the magnitude that do not fit
  u64 kept = 0;
  if (drop <= 0) {
    kept = e.magnitude << -drop;
  } else {
    const bool far = drop > 64;
    kept = drop > 63 ? 0 : e.magnitude >> drop;
    const u64 rest = drop > 63 ? e.magnitude : e.magnitude & ((u64{1} << drop) - 1);
    const u64 half = drop > 64 ? 0 : u64{1} << (drop - 1);
    const bool above = !far && rest > half, tie = !far && rest == half;
    const bool up = form.mode == rounding::nearest ? above || (tie && (kept & 1))
                    : form.mode == rounding::away  ? above || tie
                                                   : outward && rest != 0;
    kept += up;
  }
  // kept has the implicit bit of a normal number; a carry moves the exponent on by itself.
  const auto biased = static_cast<u64>(exponent + f.bias - 1);
  const u64 packed = (biased << f.mantissa_bits) + kept;
  if (packed > f.largest) return too_large();
  return sign | static_cast<u32>(packed);
}

exact lane_number(const warp* w, u32 reference, int l, number from) {
  switch (from) {
    case number::f32:
      return exact_of(lane_value<float>(w, reference, l));
    case number::f64:
      return exact_of(lane_value<double>(w, reference, l));
    case number::f16:
      return exact_of(narrow_value(lane_value<u16>(w, reference, l), narrow::f16));
    case number::bf16:
      return exact_of(narrow_value(lane_value<u16>(w, reference, l), narrow::bf16));
    case number::s64: {
      const auto v = lane_value<std::int64_t>(w, reference, l);
      return {v < 0, false, false, v < 0 ? 0 - static_cast<u64>(v) : static_cast<u64>(v), 0};
    }
    default:
      return {false, false, false, lane_value<u64>(w, reference, l), 0};
  }
}

const inst* one(warp* w, const inst* i) {
  const auto form = narrow_form::decode(i->aux);
  each_lane(w, [&](int l) {
    const u32 bits = round_to(lane_number(w, i->r[1], l, form.from), form);
    if (form.to == narrow::tf32) {
      // A NaN is cut, as GPUs have it: its upper bits stay.
      const u32 cut = lane_value<u32>(w, i->r[1], l) & 0xffffe000;
      set_lane<u32>(w, i->r[0], l, bits == 0x3ffff ? cut : bits << 13);
    } else if (form.to == narrow::bf16 && form.from == number::f64 && bits == 0x7fff) {  // its sign stays
      set_lane<u16>(w, i->r[0], l, __builtin_signbit(lane_value<double>(w, i->r[1], l)) ? 0xffc0 : 0x7fc0);
    } else {
      set_lane<u16>(w, i->r[0], l, static_cast<u16>(bits));
    }
  });
  return i + 1;
}

const inst* two(warp* w, const inst* i) {
  const auto form = narrow_form::decode(i->aux);
  const bool halves = form.to == narrow::f16 || form.to == narrow::bf16;
  each_lane(w, [&](int l) {
    const u32 high = round_to(lane_number(w, i->r[1], l, form.from), form);
    const u32 low = round_to(lane_number(w, i->r[2], l, form.from), form);
    if (halves) {
      set_lane<u32>(w, i->r[0], l, high << 16 | low);
    } else if (form.to == narrow::e2m1) {
      set_lane<u16>(w, i->r[0], l, static_cast<u16>(high << 4 | low));
    } else {
      set_lane<u16>(w, i->r[0], l, static_cast<u16>(high << 8 | low));
    }
  });
  return i + 1;
}

const inst* pair(warp* w, const inst* i) {
  const auto form = narrow_form::decode(i->aux);
  const narrow source = form.from == number::bf16 ? narrow::bf16 : narrow::f16;
  each_lane(w, [&](int l) {
    const auto a = lane_value<u32>(w, i->r[1], l);
    const auto part = [&](u32 bits) { return round_to(exact_of(narrow_value(bits & 0xffff, source)), form); };
    set_lane<u16>(w, i->r[0], l, static_cast<u16>(part(a >> 16) << 8 | part(a)));
  });
  return i + 1;
}

const inst* widen(warp* w, const inst* i) {
  const auto form = narrow_form::decode(i->aux);
  narrow_form out = form;
  out.to = form.from == number::bf16 ? narrow::bf16 : narrow::f16;
  out.finite = false;
  const u32 bits = form.to == narrow::e2m1 ? 4 : 8;
  each_lane(w, [&](int l) {
    const u32 a = lane_value<u16>(w, i->r[1], l);
    const auto part = [&](u32 v) {
      return round_to(exact_of(narrow_value(v & ((1u << bits) - 1), form.to)), out);
    };
    set_lane<u32>(w, i->r[0], l, part(a >> bits) << 16 | part(a));
  });
  return i + 1;
}

const inst* pack(warp* w, const inst* i) {
  const u32 bits = i->aux & 255;
  const bool sign = i->aux & 256;
  const std::int64_t high = sign ? (std::int64_t{1} << (bits - 1)) - 1 : (std::int64_t{1} << bits) - 1;
  const std::int64_t low = sign ? -high - 1 : 0;
  const u64 ones = (u64{1} << bits) - 1;
  each_lane(w, [&](int l) {
    const auto part = [&](u32 reference) {
      const std::int64_t v = lane_value<std::int32_t>(w, reference, l);
      return static_cast<u64>(std::clamp(v, low, high)) & ones;
    };
    u64 d = part(i->r[1]) << bits | part(i->r[2]);
    if (bits < 16) d |= u64{lane_value<u32>(w, i->r[3], l)} << (2 * bits);
    set_lane<u32>(w, i->r[0], l, static_cast<u32>(d));
  });
  return i + 1;
}

const inst* flush_half(warp* w, const inst* i) {
  const auto flush = [](u32 v) { return (v & 0x7c00) == 0 ? v & 0x8000 : v & 0xffff; };
  each_lane(w, [&](int l) {
    if (i->aux == 2) {
      set_lane<u16>(w, i->r[0], l, static_cast<u16>(flush(lane_value<u16>(w, i->r[1], l))));
    } else {
      const auto v = lane_value<u32>(w, i->r[1], l);
      set_lane<u32>(w, i->r[0], l, flush(v) | flush(v >> 16) << 16);
    }
  });
  return i + 1;
}

}  // namespace

std::uint32_t narrow_bits(double value, const narrow_form& form) { return round_to(exact_of(value), form); }

double narrow_value(std::uint32_t bits, narrow n) {
  const format& f = format_of(n);
  const u32 body = bits & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  const bool negative = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  const u64 sign = negative ? u64{1} << 63 : 0;
  const bool has_nan = f.nan != 0;
  if (has_nan && body > f.largest) {
    const bool infinite = f.infinite && body == f.largest + 1;
    return std::bit_cast<double>(sign | (infinite ? 0x7ff0000000000000 : 0x7ff8000000000000));
  }
  const auto biased = static_cast<int>(body >> f.mantissa_bits);
  u64 mantissa = body & ((1u << f.mantissa_bits) - 1);
  if (biased != 0) mantissa |= u64{1} << f.mantissa_bits;
  // Exact: at most 11 bits times a power of two within double's range.
  const int exponent = (biased == 0 ? 1 : biased) - f.bias - f.mantissa_bits;
  const double value = static_cast<double>(mantissa) * __builtin_ldexp(1.0, exponent);
  return negative ? -value : value;
}

const convert_steps& conversions() {
  static constexpr convert_steps all = {one, two, pair, widen, pack, flush_half};
  return all;
}

}  // namespace outboard::ptx
