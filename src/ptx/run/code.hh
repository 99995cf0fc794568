// Decoded functions of one loaded module. Built by decode, then immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "ptx/lanes/steps.hh"
#include "ptx/text/layout.hh"
#include "ptx/text/module.hh"

namespace outboard::ptx {

struct function_code;

/// Functions the device provides; PTX declares them .extern.
enum class builtin : std::uint8_t {
  none,
  vprintf,
  assertfail,
  malloc,
  free,
  set_conditional,
  // From here on: what the CUDA runtime's device library asks for (child_grids.hh).
  child_parameters,
  child_launch,
  child_get_error,
  child_set_error,
  child_stream_create,
  child_stream_destroy,
};

/// One value handed to or from a callee. A place is a register (reference) or an offset in a frame.
struct transfer {
  bool caller_register = false, callee_register = false;
  std::uint32_t caller = 0, callee = 0;  ///< register reference, or offset in the frame
  std::uint32_t bytes = 0;
};

struct call_site {
  const function_code* callee = nullptr;  ///< null: indirect, through `pointer`
  builtin provided = builtin::none;
  std::uint32_t pointer = 0;
  std::vector<transfer> in, out;
  std::uint64_t signature = 0;  ///< hash of sizes, compared with an indirect callee's
};

struct jump_table {
  std::vector<const inst*> targets;
  std::vector<std::int32_t> statements;
};

/// Constants repeated over 32 lanes, 64-byte aligned, never moved after decode.
struct aligned_delete {
  void operator()(char* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using lane_memory = std::unique_ptr<char[], aligned_delete>;
lane_memory make_lane_memory(std::size_t bytes);

struct function_code {
  const function* source = nullptr;
  std::string name;
  std::vector<inst> body;
  std::vector<std::uint32_t> statement;  ///< body[n] comes from source->body[statement[n]]
  lane_memory constants;
  std::uint32_t register_bytes = 0;
  frame_layout frame;
  std::vector<std::unique_ptr<call_site>> calls;
  std::vector<std::unique_ptr<jump_table>> tables;
  std::vector<std::shared_ptr<const void>> details;  ///< what inst::imm of other steps points to
  std::uint64_t signature = 0;
  std::uint32_t static_shared = 0;  ///< kernels
  std::uint64_t stack = 0;          ///< of the deepest chain of direct calls, own frame included
  bool open_ended = false;          ///< recursion or indirect calls
};

struct code {
  std::deque<function_code> functions;
  std::map<std::string_view, function_code*> by_name;
  std::map<std::uint64_t, const function_code*> by_address;  ///< what a function pointer may hold
  std::vector<range> constant_ranges;
};

std::uint64_t signature_of(const std::vector<variable>& returns, const std::vector<variable>& parameters);

using variable_addresses = std::map<const variable*, std::uint64_t>;
/// The error names what is refused, a statement a line, up to `most_refused` of them. `open`: symbols that
/// are declared .extern may lack a definition; what comes out cannot be run then.
result<std::unique_ptr<code>> decode(const program& p, const variable_addresses& addresses,
                                     std::size_t most_refused = 20, bool open = false);

}  // namespace outboard::ptx
