// An NVML expanded from the tables, for tests: every function succeeds and fills its outputs with bytes that
// depend on its opcode and the parameter's place, so that a test knows what must arrive. A few return
// plausible values (has_values()). Any thread.
#pragma once

#include <memory>

#include "device/nvml.hh"

namespace outboard::device::mock {

inline constexpr unsigned nvml_devices = 2;

std::unique_ptr<nvml_device> open_nvml();

/// Functions that give plausible values instead of such bytes.
constexpr bool has_values(api::nvml::opcode code) {
  using enum api::nvml::opcode;
  return code == nvmlDeviceGetUUID || code == nvmlDeviceGetSerial || code == nvmlDeviceGetPciInfo_v3 ||
         code == nvmlDeviceGetName || code == nvmlDeviceGetMemoryInfo || code == nvmlDeviceGetMemoryInfo_v2 ||
         code == nvmlDeviceGetUtilizationRates || code == nvmlDeviceGetProcessesUtilizationInfo ||
         code == nvmlSystemEventSetWait || code == nvmlGpmMetricsGet;
}

/// What the mock writes for a text that the library chooses.
inline constexpr const char* nvml_text = "mock text";

/// What the mock writes into byte `at` of output `parameter`; for a list in a struct, `at` counts from the
/// list's beginning.
constexpr std::uint8_t nvml_byte(api::nvml::opcode code, std::size_t parameter, std::size_t at) {
  return static_cast<std::uint8_t>(static_cast<std::uint32_t>(code) * 31 + parameter * 7 + at % 13 + 1);
}

}  // namespace outboard::device::mock
