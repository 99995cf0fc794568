// Free device memory asked of NVML, which needs no context and so can be asked before the first one exists.
// Used by a warm worker to tell what it occupies. Main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outboard::tool {

/// Bytes; nothing where NVML or the device is not there.
std::optional<std::uint64_t> nvml_free_memory(const std::string& pci_bus_id);

}  // namespace outboard::tool
