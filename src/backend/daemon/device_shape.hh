// What clients see of the devices lent: which of them, in which order, under which name and with how much
// memory, by the server's configuration. Both the driver's side and NVML's ask here, so they agree. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/configuration/config.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

/// `own`: the board's. Cut to what cuDeviceGetName and NVML have room for.
std::string shaped_name(const shape_settings& shape, std::string_view own);
std::uint64_t shaped_memory(const shape_settings& shape, std::uint64_t total);

/// Name and memory of every device.
void apply_shape(const shape_settings& shape, marshal::snapshot& facts);

/// The devices that the configuration's list names, by their place in `uuids`; an error says which entry
/// names none, or one that is named already, and what there is.
result<std::vector<std::size_t>> choose_devices(std::span<const std::string> wanted,
                                                std::span<const std::string> uuids,
                                                std::string_view key = "devices.visible");

}  // namespace outboard::backend
