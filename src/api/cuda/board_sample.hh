// What the sensors of a device said at one moment, as CUPTI samples them. A value.
#pragma once

#include <array>
#include <cstdint>

namespace outboard::api {

/// As CUPTI numbers its kinds of environment.
enum class sample_kind : std::uint8_t { speed = 1, temperature = 2, power = 3, cooling = 4 };

struct board_sample {
  sample_kind kind = sample_kind::speed;
  std::uint32_t device = 0;  ///< ordinal in the worker
  std::uint64_t at = 0;      ///< nanoseconds on the recorder's clock
  /// Of speed: MHz of the multiprocessors and of the memory, generation and width of the PCIe link, CUPTI's
  /// reasons for throttled clocks. Of temperature: degrees C. Of power: milliwatts, and their limit. Of
  /// cooling: the fan's speed in percent.
  std::array<std::uint32_t, 5> values{};

  template <class Visit>
  void fields(Visit& visit) {
    visit(kind, device, at, values);
  }
};

}  // namespace outboard::api
