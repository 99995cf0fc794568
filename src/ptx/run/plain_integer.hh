// Integer instructions in plain steps: bit fields that no program spends its time in, and video. `mode` of a
// step is inst::aux. Decode reads this; the steps run anywhere.
#pragma once

#include "ptx/lanes/machine.hh"

namespace outboard::ptx {

/// d = f(a, b, c): r[0..3], all 32 bits.
enum class bits3 : std::uint8_t {
  prmt_f4e,
  prmt_b4e,
  prmt_rc8,
  prmt_ecl,
  prmt_ecr,
  prmt_rc16,
  dp2a,   ///< mode: 1 a signed, 2 b signed, 4 high half of b
  dp4a,   ///< mode as dp2a
  szext,  ///< d = f(a, b); mode: 1 signed, 2 wrap
  fns,
  mad24_hi,  ///< mode: 1 signed, 2 saturate
  count
};
step bits3_step(bits3 which);

/// Halfword pairs: r[0..3], mode: 1 signed, 2 saturate (add) or relu (min, max).
enum class pair16 : std::uint8_t { add, sub, min, max, neg, count };
step pair16_step(pair16 which);

/// Video instructions, scalar and SIMD; inst::imm points to this.
enum class video : std::uint8_t { add, sub, absdiff, min, max, avrg, shl, shr, mad, set };
enum class video_merge : std::uint8_t { none, add, min, max, part };
struct video_step {
  video what = video::add;
  video_merge merge = video_merge::none;
  std::uint8_t parts = 1;  ///< 1, 2, 4
  bool d_signed = false, a_signed = false, b_signed = false;
  bool saturate = false, wrap = false;
  bool negate_a = false, negate_b = false, negate_c = false, plus_one = false;
  std::uint8_t scale = 0;    ///< vmad: shift right by 7 or 15
  std::uint8_t compare = 0;  ///< vset: 0 eq 1 ne 2 lt 3 le 4 gt 5 ge
  std::uint8_t a_first = 0, a_bits = 32, b_first = 0, b_bits = 32, d_first = 0,
               d_bits = 32;                                             ///< scalar parts
  std::uint8_t a_select[4] = {0, 1, 2, 3}, b_select[4] = {4, 5, 6, 7};  ///< SIMD: of a (low) and b (high)
  std::uint8_t mask = 15;
};
const inst* video_run(warp* w, const inst* i);

}  // namespace outboard::ptx
