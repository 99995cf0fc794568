// Which functions belong to which extension of OpenCL, from extensions.def. Static storage; any thread.
#pragma once

#include <span>
#include <string_view>

#include "api/opencl/functions.hh"

namespace outboard::api::opencl {

struct extension_function {
  std::string_view extension, name;
  opcode code;
};
std::span<const extension_function> extension_functions();

/// An extension's function that became a core function without a change.
struct promoted_function {
  std::string_view extension, name;
  opcode core;
};
std::span<const promoted_function> promoted_functions();

/// Such a function's address comes from its platform, not from the loader.
template <opcode Op>
inline constexpr bool is_extension = static_cast<std::uint32_t>(Op) / 1000 ==
                                     static_cast<std::uint32_t>(opcode::chapter_extensions) / 1000 + 1;

}  // namespace outboard::api::opencl
