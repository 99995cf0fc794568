// The size of a kernel's argument, by the name of its type. Pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace outboard::frontend::opencl {

/// 0: not one of the language's own types of fixed size.
std::size_t size_of_type(std::string_view name);

}  // namespace outboard::frontend::opencl
