// Conversions to and from narrow floating-point formats, in exact arithmetic with one rounding. inst::aux of
// the steps is narrow_form::encode() of what is wanted. Decode reads this; the steps run anywhere.
#pragma once

#include "ptx/lanes/machine.hh"

namespace outboard::ptx {

enum class narrow : std::uint8_t { f16, bf16, e4m3, e5m2, tf32, e2m3, e3m2, e2m1 };
enum class rounding : std::uint8_t { nearest, zero, down, up, away };  ///< away: nearest, ties away from zero
enum class number : std::uint8_t { f32, f64, s64, u64, f16, bf16 };

struct narrow_form {
  narrow to = narrow::f16;
  number from = number::f32;
  rounding mode = rounding::nearest;
  bool finite = false;  ///< too large becomes the largest number
  bool relu = false;

  std::uint32_t encode() const {
    return static_cast<std::uint32_t>(to) | static_cast<std::uint32_t>(from) << 4 |
           static_cast<std::uint32_t>(mode) << 8 | (finite ? 1u << 12 : 0) | (relu ? 1u << 13 : 0);
  }
  static narrow_form decode(std::uint32_t aux) {
    return {static_cast<narrow>(aux & 15), static_cast<number>(aux >> 4 & 15),
            static_cast<rounding>(aux >> 8 & 15), (aux >> 12 & 1) != 0, (aux >> 13 & 1) != 0};
  }
};

/// Bits of the format nearest to a double; the reference of the steps, for tests and matrices too.
std::uint32_t narrow_bits(double value, const narrow_form& form);
double narrow_value(std::uint32_t bits, narrow format);

struct convert_steps {
  step one;         ///< r[0] = of r[1]; the result has 16 bits, tf32 has 32
  step two;         ///< r[0] (16 bits) = {r[1] high, r[2] low} as bytes or f16 pairs (32 bits)
  step pair;        ///< r[0] (16 bits) = two bytes of the pair of halves r[1]
  step widen;       ///< r[0] (32 bits, f16x2 or bf16x2 in `from`) = of the two bytes r[1] in format `to`
  step pack;        ///< cvt.pack: r[0] = {c, sat(a), sat(b)}; aux: bits of a part, 256 signed
  step flush_half;  ///< r[0] = r[1] with subnormals made zero; aux: 2 or 4 bytes
};
const convert_steps& conversions();

}  // namespace outboard::ptx
