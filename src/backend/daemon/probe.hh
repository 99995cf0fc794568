// Asks a short-lived worker process what a device is, because neither the daemon nor the command ever opens a
// driver. Called at start, before anything is served, on the main thread; waits for the answer.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "backend/daemon/workers.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

struct probed_device {
  std::string kind;         ///< "vendor", "cpu", "mock"
  std::string description;  ///< what executes, with its version and path
  marshal::snapshot snapshot;
  std::string no_gpu;  ///< why `auto` did not take the GPU's driver; empty: it did, or was not asked to
};

/// Returns the facts about the device, or why it cannot be used.
result<probed_device> probe_device(const worker_command& command, const std::string& kind,
                                   const variable_source& own_environment);

/// `automatic` takes the vendor's driver if it opens and has a device, else the cpu device.
result<probed_device> choose_device(const worker_command& command, device_choice choice,
                                    const variable_source& own_environment);

/// "GPU-xxxxxxxx-…", as nvidia-smi and CUDA_VISIBLE_DEVICES write it.
std::string format_uuid(const std::array<std::byte, 16>& uuid, std::string_view prefix = "GPU-");

/// The devices as CUDA_VISIBLE_DEVICES names them: a part of a board (MIG) has its own UUID.
std::vector<std::string> uuids_of(const marshal::snapshot& snapshot);

/// Returns an error, with what to do, if kernels of a GPU can access the memory of their worker and the
/// configuration does not say how to serve it.
status check_pageable_access(const config& c, const probed_device& device);
/// Kernels of this device can access ordinary memory of the host without a fault of anything (HMM, ATS). The
/// cpu device checks each access itself.
bool has_pageable_access(const probed_device& device, std::size_t ordinal);
/// How workers of CUDA sessions are confined on this device.
confine_choice confine_cuda_of(const config& c, const probed_device& device);

/// Returns whether a device refuses a second process. Then no warm worker may hold a context.
bool exclusive_compute_mode(const marshal::snapshot& snapshot);

}  // namespace outboard::backend
