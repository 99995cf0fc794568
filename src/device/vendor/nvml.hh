// The vendor's NVML: the real libnvidia-ml.so.1 next to the driver library, opened by resolved path, never
// one of ours. It stays loaded. Any thread.
#pragma once

#include <memory>

#include "base/result.hh"
#include "device/nvml.hh"

namespace outboard::device::vendor {

/// Opens it and calls nvmlInit. `library`: a file to use instead of the one found next to candidates().
result<std::unique_ptr<nvml_device>> open_nvml(const std::string& library = {});

}  // namespace outboard::device::vendor
