// What a worker's session speaks where that is CUDA: the device, with a context in waiting, and where module
// images are kept. Of the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/worker/worker_api.hh"
#include "base/configuration/config.hh"
#include "device/device.hh"

namespace outboard::backend {

struct cuda_worker_terms {
  /// The function gets what the device says of work that failed.
  std::function<result<std::unique_ptr<device::device>>(device::failure_teller)> open_device;
  /// Free memory in bytes of the device with this PCI address, asked without a context; or nothing.
  std::function<std::optional<std::uint64_t>(const std::string& pci_bus_id)> free_memory = {};
  cache_settings cache = {};  ///< of module images; without a directory there is none
  bool core_dumps = true;     ///< the device may write them
};

api_opener open_cuda(cuda_worker_terms terms);

}  // namespace outboard::backend
