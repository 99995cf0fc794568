// Asks NVML for free device memory. NVML needs no context, so it can be asked before the first one exists. A
// warm worker finds out in this way how much it occupies. Main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outboard::tool {

/// In bytes; nothing if NVML or the device cannot be used.
std::optional<std::uint64_t> nvml_free_memory(const std::string& pci_bus_id);

}  // namespace outboard::tool
