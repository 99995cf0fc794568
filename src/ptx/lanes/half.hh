// binary16 and bfloat16 as their bits: conversion in integer arithmetic, so that it vectorises on every
// level. Included by lane files only (see loop.hh).
#pragma once

#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

LANE_INLINE float as_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
LANE_INLINE std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }

LANE_INLINE float half_to_float(std::uint32_t h) {
  const std::uint32_t sign = (h & 0x8000) << 16, body = h & 0x7fff;
  // Exponent and mantissa moved into place, then scaled by 2^112: right for subnormals too.
  const float scaled = as_float(body << 13) * as_float(0x77800000);
  const std::uint32_t special = 0x7f800000 | (body & 0x3ff) << 13;
  return as_float(sign | (body >= 0x7c00 ? special : bits_of(scaled)));
}

/// a * b + c of small mantissas, rounded to odd: a second rounding to fewer bits then gives the same result
/// as a single one.
LANE_INLINE double fma_to_odd(double a, double b, double c) {
  const double product = a * b;  // exact
  const double sum = product + c, other = sum - product;
  const double rest = (product - (sum - other)) + (c - other);
  const auto bits = __builtin_bit_cast(std::uint64_t, sum);
  const bool inexact = rest < 0 || rest > 0;
  const std::uint64_t step = (rest > 0) == (sum > 0) ? 1 : ~std::uint64_t{0};
  return __builtin_bit_cast(double, bits + (inexact && (bits & 1) == 0 ? step : 0));
}
LANE_INLINE float double_to_odd_float(double value) {
  const float nearest = static_cast<float>(value);
  const std::uint32_t bits = bits_of(nearest);
  const double back = nearest, size = __builtin_fabs(value);
  const bool inexact = back < value || back > value;
  const std::uint32_t step = __builtin_fabs(back) < size ? 1 : ~std::uint32_t{0};
  return as_float(bits + (inexact && (bits & 1) == 0 && bits << 1 < 0xff000000 ? step : 0));
}

/// Modes: 0 nearest even, 1 toward zero, 2 down, 3 up. Takes a double, so that no value is rounded twice.
LANE_INLINE std::uint16_t double_to_half(double value, std::uint32_t mode) {
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const std::uint64_t body = bits & 0x7fffffffffffffff;
  if (body > 0x7ff0000000000000) return 0x7fff;
  if (body == 0x7ff0000000000000) return sign | 0x7c00;
  const int exponent = static_cast<int>(body >> 52) - 1023;
  const bool away = (mode == 2 && sign) || (mode == 3 && !sign);
  if (exponent > 15) return sign | (mode == 0 || away ? 0x7c00 : 0x7bff);
  if (body == 0) return sign;
  if (exponent < -26) return static_cast<std::uint16_t>(sign | (away ? 1 : 0));
  const std::uint64_t mantissa = (body & 0xfffffffffffff) | std::uint64_t{1} << 52;
  // 42 bits go in a normal number, more in a subnormal one.
  const int drop = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  std::uint64_t kept = mantissa >> drop;
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << drop) - 1),
                      middle = std::uint64_t{1} << (drop - 1);
  if (mode == 0 ? rest > middle || (rest == middle && (kept & 1)) : away && rest != 0) ++kept;
  // `kept` holds the implicit bit of a normal number, hence exponent - 1; a carry moves on by itself.
  const std::uint64_t biased = exponent >= -14 ? static_cast<std::uint64_t>(exponent + 14) : 0;
  const std::uint64_t packed = (biased << 10) + kept;
  if (packed >= 0x7c00) return sign | (mode == 0 || away ? 0x7c00 : 0x7bff);
  return static_cast<std::uint16_t>(sign | packed);
}

/// Rounds to nearest even, without branches.
LANE_INLINE std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, body = bits & 0x7fffffff;
  // Normal: add half an ulp less one plus the odd bit. Subnormal: let the adder of a float with that ulp
  // round.
  const std::uint32_t normal = (body - 0x38000000 + 0xfff + (body >> 13 & 1)) >> 13;
  const std::uint32_t small = bits_of(as_float(body) + 0.5f) - 0x3f000000;
  std::uint32_t out = body < 0x38800000 ? small : normal;
  out = body >= 0x47800000 ? 0x7c00 : out;
  out = body > 0x7f800000 ? 0x7fff : out;
  return static_cast<std::uint16_t>(body > 0x7f800000 ? out : out | sign);
}

LANE_INLINE float bfloat_to_float(std::uint32_t b) { return as_float(b << 16); }

LANE_INLINE std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
LANE_INLINE std::uint16_t float_to_bfloat(float value, std::uint32_t mode) {
  const std::uint32_t bits = bits_of(value), sign = bits >> 31;
  const bool away = mode == 2 ? sign != 0 : mode == 3 && sign == 0;
  const std::uint32_t directed = (bits >> 16) + (away && (bits & 0xffff) != 0 ? 1 : 0);
  const bool special = (bits & 0x7fffffff) > 0x7f800000;
  return mode == 0 || special ? float_to_bfloat(value) : static_cast<std::uint16_t>(directed);
}

}  // namespace
}  // namespace outboard::ptx::OUTBOARD_LANES
