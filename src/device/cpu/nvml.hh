// NVML of the cpu device. A function that has a meaning for this machine returns true values; others (fans,
// clocks, NVLink, ECC) return NOT_SUPPORTED, as on boards without them. Memory and utilisation are those of
// the workers. Only one at a time in a process; any thread.
#pragma once

#include <memory>

#include "base/result.hh"
#include "device/cpu/cpu.hh"
#include "device/nvml.hh"

namespace outboard::device::cpu {

/// `how` must be the workers' options, so that both report the same.
result<std::unique_ptr<nvml_device>> open_nvml(const options& how, activity_source workers);

}  // namespace outboard::device::cpu
