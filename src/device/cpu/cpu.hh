// The cpu device: the CUDA driver's semantics over the PTX executor, for machines without a GPU. One device
// "Outboard CPU device" with memory of its own size, contexts, streams, events, modules. What it cannot do
// has no entry. Owned by the worker; entries may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.hh"
#include "device/device.hh"

namespace outboard::device::cpu {

struct options {
  int capability = 75;             ///< compute capability x 10, 50..120
  std::uint64_t memory_bytes = 0;  ///< device memory; 0: half of the machine's RAM. Rounded down to 2 MiB
  unsigned cores = 0;              ///< threads that run blocks; 0: all that the process may use
  std::chrono::milliseconds kernel_timeout{
      0};  ///< a longer kernel ends with CUDA_ERROR_LAUNCH_TIMEOUT; 0: none
  /// Takes device printf; called from any thread, one call at a time. Empty: standard output.
  std::function<void(std::string_view)> print = {};
  /// Takes the message of a failed device assertion. Empty: standard error.
  std::function<void(std::string_view)> print_error = {};
  /// Empty: the log, as an error.
  failure_teller tell = {};
};

/// One at a time in a process, because entries of a driver carry no pointer to their device: an error while
/// another lives, for values out of range, or when the address space cannot be had. Destroying it cancels
/// what runs.
result<std::unique_ptr<device>> open(const options& how = {});

}  // namespace outboard::device::cpu
