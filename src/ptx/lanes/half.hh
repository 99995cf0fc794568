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

/// Modes: 0 nearest even, 1 toward zero, 2 down, 3 up. From double, so that no value is rounded twice.
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

/// Nearest even, branch-free.
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

}  // namespace
}  // namespace outboard::ptx::OUTBOARD_LANES
