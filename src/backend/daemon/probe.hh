// Asks what a device is, by a short-lived worker process, because neither the daemon nor the command ever
// opens a driver. Called at start, before anything is served; waits for the answer.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "backend/daemon/workers/workers.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

struct probed_device {
  std::string kind;         ///< "vendor", "cpu", "mock"
  std::string description;  ///< what executes, with its version and path
  marshal::snapshot snapshot;
  std::string no_profiles = {};  ///< why profilers see nothing of its work; empty: they do
  std::string no_gpu = {};       ///< why "auto" took the cpu device; empty: it did not
};

/// The device named, or the reason why it cannot be had.
result<probed_device> probe_device(const worker_command& command, const std::string& kind,
                                   const variable_source& own_environment);

/// automatic: the vendor's driver if it opens and has a device, else the cpu device.
result<probed_device> choose_device(const worker_command& command, device_choice choice,
                                    const variable_source& own_environment);

/// "GPU-xxxxxxxx-…", as nvidia-smi and CUDA_VISIBLE_DEVICES write it.
std::string format_uuid(const std::array<std::byte, 16>& uuid, std::string_view prefix = "GPU-");

/// As CUDA_VISIBLE_DEVICES names the devices: a part of a board (MIG) by its own UUID.
std::vector<std::string> uuids_of(const marshal::snapshot& snapshot);

/// True where a device refuses a second process, so that no warm worker may hold a context.
bool exclusive_compute_mode(const marshal::snapshot& snapshot);

/// True where kernels of a device read and write all memory of their process, not only what it gave them:
/// HMM, or ATS (Grace). NVIDIA's driver for the one, hardware for the other.
bool reaches_all_memory(const marshal::snapshot& snapshot);

}  // namespace outboard::backend
