// What clients see of the devices lent, by the server's configuration: which of them, in which order, under
// which name and with how much memory. CUDA and NVML both ask here, so they agree. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

/// `own` is the board's name. The result is cut to what fits into NVML's buffer.
std::string shaped_name(const shape_settings& shape, std::string_view own);
std::uint64_t shaped_memory(const shape_settings& shape, std::uint64_t total);

/// Sets the name and memory of every device.
void apply_shape(const shape_settings& shape, marshal::snapshot& facts);

/// Returns the devices that the configuration's list names, as indices into `uuids`. An error says which
/// entry names none, or one that the list has already, and which devices there are.
result<std::vector<std::size_t>> choose_devices(std::span<const std::string> wanted,
                                                std::span<const std::string> uuids);

}  // namespace outboard::backend
