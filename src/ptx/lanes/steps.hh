// The table of the lane loops that one instruction set level provides; decode looks steps up in it. It is
// filled once at first use, then read from any thread. A null entry means that there is no such instruction.
#pragma once

#include "ptx/lanes/machine.hh"

namespace outboard::ptx {

/// Element types of the lane loops. 8-bit values live in 16-bit registers, halves as their bits.
enum class element : std::uint8_t {
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f32,
  f64,
  f16x2,
  bf16x2,
  count
};

// clang-format off
enum class op : std::uint8_t {
  // d = op(a)
  mov, not_, neg, abs, popc, clz, brev, bfind, bfind_shift, cnot, sqrt, rsqrt, rcp, ex2, lg2, sin, cos, tanh,
  flush, saturate, round_even, round_zero, round_down, round_up, relu,
  finite, infinite, number, notanumber, normal, subnormal,  // testp: d is a predicate
  // d = op(a, b)
  add, sub, mul, mul_hi, mul_wide, div, rem, min, max, min_nan, max_nan, and_, or_, xor_, shl, shr, add_sat, sub_sat,
  add_ftz, sub_ftz, mul_ftz, copysign, add_carry, sub_carry, add_with, sub_with, bmsk_clamp, bmsk_wrap,
  div_approx,
  // d = op(a, b, c)
  mad, mad_hi, mad_wide, mad_hi_sat, fma, fma_ftz, fma_relu, sad, bfe, selp, slct, slct_f32, lop3, prmt,
  shf_l_wrap, shf_l_clamp, shf_r_wrap, shf_r_clamp, dp4a, mul24, mul24_hi, mad24,
  bfi,  // d = op(a, b, c, e)
  // predicate d = a op b
  eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan,
  count,
};
enum class atom : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas, count };
enum class where : std::uint8_t { generic, shared32, shared64, local32, local64, count };
enum class mix : std::uint8_t { and_, or_, xor_, not_, mov, count };
// clang-format on

inline constexpr int element_count = static_cast<int>(element::count);
inline constexpr int op_count = static_cast<int>(op::count);

struct step_table {
  step simple[op_count][element_count];
  step convert[element_count][element_count];       ///< [to][from], to integer truncates and saturates
  step convert_sat[element_count][element_count];   ///< integers only
  step load[static_cast<int>(where::count)][4][3];  ///< [log2 bytes of an element][log2 elements]
  step store[static_cast<int>(where::count)][4][3];
  step load_s8[static_cast<int>(where::count)];  ///< sign-extends into its 16-bit register
  step atomic[static_cast<int>(where::count)][static_cast<int>(atom::count)][element_count];
  step mix_predicate[static_cast<int>(mix::count)];  ///< d = a op b on predicates
  step load_parameter[4];  ///< [log2 bytes]: d = parameters[imm], same for all lanes
  step load_parameter_s8;
  step branch, branch_if, branch_unless;  ///< r[1]: predicate
  step guard, guard_not, unguard;         ///< around one predicated instruction
  step rounding;                          ///< aux: 0 nearest, 1 zero, 2 down, 3 up
  step shuffle[4];                        ///< [log2 bytes]; aux: 0 idx 1 up 2 down 3 bfly
  step vote;                              ///< aux: 0 all 1 any 2 uni 3 ballot
  step active_mask;
  step match_any[4], match_all[4];
  step reduce[static_cast<int>(atom::count)][element_count];  ///< redux.sync
  step thread_index;                                          ///< aux: 0..2
  step add_lane_base;  ///< d = a + local base of the lane (cvta.local), imm added
  step sub_lane_base;
  step add_shared_base, sub_shared_base;
  step parameter_address;     ///< d = address of kernel parameter imm
  step local_address;         ///< d = frame-relative offset imm as a local address
  step in_range;              ///< isspacep: aux 0 shared, 1 local; else global
  step fence, lanes_special;  ///< aux: 0 laneid 1 lt 2 le 3 gt 4 ge 5 eq
  step pack, unpack;          ///< mov.b64 {a,b}: aux = element bytes, imm = count
  step multiply;              ///< matrices; imm: multiply_step
};

/// The best table for this processor.
const step_table& steps();

}  // namespace outboard::ptx
