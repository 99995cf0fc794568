// What an instruction asks for, with its words looked up once: for the reference machine only. Plain data.
#pragma once

#include <cstdint>

#include "base/result.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx::reference {

// clang-format off
enum class verb : std::uint8_t {
  none, add, sub, mul, mad, fma, div, rem, min, max, neg, abs, not_, cnot, and_, or_, xor_, shl, shr, sad, popc, clz, brev,
  bfind, bfe, bfi, lop3, prmt, shf, mul24, mad24, dp4a, sqrt, rcp, copysign, testp, setp, set, selp, slct, mov, cvt, cvta,
  ld, st, atom, red, bra, call, ret, exit, bar, shfl, vote, match, redux, fence, activemask,
};
enum class relation : std::uint8_t { none, eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class update : std::uint8_t { none, add, min, max, and_, or_, xor_, exch, cas, inc, dec };
// clang-format on

struct operation {
  verb what = verb::none;
  type t = type::none, other = type::none;  ///< in the order written
  relation compared = relation::none;
  update by = update::none;
  char combined = 0;         ///< setp: & | ^
  char rounding = 'n';       ///< n z m p
  bool to_integral = false;  ///< cvt.rni ...
  bool high = false, wide = false, saturates = false, flushes = false, carries_out = false,
       carries_in = false;
  bool left = false, wraps = false, shift_amount = false, nan_wins = false, warp = false;
  char mode = 0;  ///< shfl: i u d b; vote: a o(any) u b; match: a o; testp: first letter, N for notanumber,
                  ///< s(ubnormal)
  space where = space::generic;
  unsigned lanes = 1;  ///< ld.v4
};

result<operation> operation_of(const instruction& i);

}  // namespace outboard::ptx::reference
