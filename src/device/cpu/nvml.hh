// NVML of the cpu device: true values of this machine where a function has a meaning for it, NOT_SUPPORTED as
// boards say it where it has none (fans, clocks, NVLink, ECC). Memory and utilisation are those of the
// workers. One at a time in a process; any thread.
#pragma once

#include <memory>

#include "base/result.hh"
#include "device/cpu/cpu.hh"
#include "device/nvml.hh"

namespace outboard::device::cpu {

/// `how` as the workers have it, so that both say the same.
result<std::unique_ptr<nvml_device>> open_nvml(const options& how, activity_source workers);

}  // namespace outboard::device::cpu
