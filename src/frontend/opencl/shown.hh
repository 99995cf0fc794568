// What programs are shown of a back-end's platforms and devices: what these report themselves, with the host
// added to their names, and without what does not work from here. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "marshal/opencl/snapshot.hh"

namespace outboard::frontend::opencl {

using values = std::vector<marshal::opencl::info_value>;

/// Removes the limit from a server's facts about a device, because the program must not see it. 0: there is
/// none.
std::uint64_t take_memory_limit(values& info);

/// Removes the opcodes of the platform's extension functions from a server's facts about it, and returns
/// them.
std::vector<std::uint32_t> take_extension_functions(values& info);

/// `functions`: those that were removed from the platform's facts.
values shown_of_platform(values info, const std::string& host, std::span<const std::uint32_t> functions);
/// `shares_memory`: this process can share pages with the device's host.
values shown_of_device(values info, const std::string& host, std::span<const std::uint32_t> functions,
                       bool shares_memory);

}  // namespace outboard::frontend::opencl
