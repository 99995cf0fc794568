// What programs see of a back-end's platforms and devices: their own answers, with the host behind their
// names, and without what does not work from here. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "marshal/opencl/snapshot.hh"

namespace outboard::frontend::opencl {

using values = std::vector<marshal::opencl::info_value>;

/// Removed from what a server reports of a device: the program does not see it. 0: there is none.
std::uint64_t take_memory_limit(values& info);

/// Likewise the opcodes of the platform's extension functions.
std::vector<std::uint32_t> take_extension_functions(values& info);

/// `functions`: what take_extension_functions() gave.
values shown_of_platform(values info, const std::string& host, std::span<const std::uint32_t> functions);
/// `shares_memory`: pages of this process can be those of the device's host, too.
values shown_of_device(values info, const std::string& host, std::span<const std::uint32_t> functions,
                       bool shares_memory);

}  // namespace outboard::frontend::opencl
