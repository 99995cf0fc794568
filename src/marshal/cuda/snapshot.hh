// Everything immutable that a front-end answers from, taken once from a device: driver version, devices,
// names, UUIDs, attributes, memory sizes. Travels in the welcome of a session. Values; no thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "base/result.hh"

namespace outboard::marshal {

/// Answer of the driver to one cuDeviceGetAttribute(id): a value, or its error code.
struct attribute_answer {
  std::int32_t result = 0;
  std::int32_t value = 0;
};

struct device_facts {
  std::string name;
  std::array<std::byte, 16> uuid{};     ///< cuDeviceGetUuid
  std::array<std::byte, 16> uuid_v2{};  ///< cuDeviceGetUuid_v2 (differs under MIG)
  std::string pci_bus_id;
  std::uint64_t total_memory = 0;
  std::int32_t compute_major = 0, compute_minor = 0;
  std::vector<attribute_answer> attributes;  ///< by id, from 0 (never valid) up
  std::array<std::uint64_t, 16>
      limits{};  ///< cuCtxGetLimit defaults by CUlimit, in a fresh context; ~0: unknown
  std::int32_t least_priority = 0, greatest_priority = 0;
};

struct snapshot {
  std::int32_t driver_version = 0;
  std::int32_t loading_mode = 0;  ///< cuModuleGetLoadingMode
  std::string device_kind;        ///< "vendor", "cpu", "mock"
  std::string device_description;
  std::uint64_t window_base = 0, window_slot_size = 0;  ///< as the worker could reserve it
  bool own_addresses = false;  ///< device memory comes from the window; false: addresses are the driver's
  std::vector<device_facts> devices;
};

/// Asks the device; precondition: cuInit succeeded. Limits and priorities need a context: they are filled
/// only where `with_contexts` allows to make a primary context for a moment.
result<snapshot> take_snapshot(const api::driver_table& driver, bool with_contexts);

std::vector<std::byte> encode(const snapshot& s);
result<snapshot> decode_snapshot(std::span<const std::byte> bytes);

}  // namespace outboard::marshal
