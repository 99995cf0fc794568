// A test kernel of one form: its operands, what it computes, and its results. The rules
// (rules_*.cc) fill one in from a form; text_of() writes the PTX around it. Plain data.
//
// Every thread has a record of four 16-byte operands and a row of 16-byte results. `body` may use:
//   a b c e        the operands, in registers of their types
//   d d1 d2 ..     the results, in registers of their types
//   p q s          .pred registers
//   h0-7 r0-31 w0-15    registers of .b16, .b32 and .b64
//   in, out        the addresses of the thread's record and of its results
//   mem            scratch memory that is recorded too (see `scratch`)
//   pblock         a kernel parameter of 64 known bytes
//   t, i, l        the thread's number in the grid, in its block, and its lane
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "form.hh"

namespace conformance {

/// How far a result may be from the recorded one: |x - y| <= absolute + relative * |y|; bit for bit when both
/// are 0. Infinities, NaNs and signs of zeros must agree in any case (which NaN it is only when exact and f32
/// or smaller).
struct tolerance {
  double relative = 0, absolute = 0;
  bool exact() const { return relative == 0 && absolute == 0; }
};

/// Which operands a kernel gets in addition to the usual values of their type.
enum class values {
  any,
  small,    ///< integers 0..40, floats -4..4 in quarters: sums are exact in any order
  angle,    ///< -2 pi .. 2 pi, infinities, NaN
  unit,     ///< 0 <= x <= 1 and a little beyond
  no_zero,  ///< any but 0, because the ISA leaves division by zero open
};

struct operand_kind {
  std::string type;
  values which = values::any;
};

struct texture_setup {
  std::string geometry;  ///< 1d 2d 3d a1d a2d cube; "" for none
  std::string channel;   ///< f32 s32 u32 u8
  unsigned channels = 4;
  bool surface = false, linear = false, normalized = false;
  unsigned mipmaps = 1;
};

struct kernel {
  std::string globals, body;
  std::vector<operand_kind> in;
  std::vector<std::string>
      out;  ///< types of d, d1, ...; "raw" is a row that the body stores itself, 16 bytes
  tolerance within;
  unsigned threads = 128;  ///< of a block
  unsigned scratch = 0;    ///< bytes of `mem` that are recorded
  std::string more_registers;
  texture_setup texture;
  bool cooperative = false;
};

constexpr unsigned operand_stride = 64, result_bytes = 16, parameter_block = 64;

/// Returns nothing if no rule knows the form.
std::optional<kernel> kernel_of(const form& f);
std::string text_of(const kernel& k);

/// The rules, by chapter. Each returns nothing if the form does not belong to it.
std::optional<kernel> arithmetic_rule(const form& f);
std::optional<kernel> compare_rule(const form& f);
std::optional<kernel> convert_rule(const form& f);
std::optional<kernel> memory_rule(const form& f);
std::optional<kernel> atomic_rule(const form& f);
std::optional<kernel> warp_rule(const form& f);
std::optional<kernel> control_rule(const form& f);
std::optional<kernel> asynchronous_rule(const form& f);
std::optional<kernel> texture_rule(const form& f);
std::optional<kernel> matrix_rule(const form& f);

}  // namespace conformance
