// Whether the driver can be expected to accept a launch, judged from what the front-end knows of device and
// kernel. A launch that cannot be expected to succeed waits, so that the call itself returns the driver's own
// code. Values and free functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "api/cuda/headers.hh"
#include "frontend/cuda/objects.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend::cuda {

/// By device; an attribute that the device does not have is 0, so that nothing is within it.
struct launch_limits {
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t threads = 0, registers = 0;
  static launch_limits of(const marshal::device_facts& device);
};

struct launch_shape {
  std::array<std::uint32_t, 3> grid{}, block{}, cluster{};  ///< cluster: zeros if the launch names none
  std::uint32_t shared = 0;
  bool cooperative = false;
};

enum class prospect : std::uint8_t {
  good,
  doubtful,  ///< it depends on what only the driver knows: once it accepted this shape, it will again
  bad,       ///< outside a limit
};

prospect judge(const launch_shape& shape, const kernel_object& kernel, const launch_limits& limits);

/// What the driver's answer to a doubtful launch depends on, as one number; not 0. `limit`: what the kernel
/// may have of shared memory, as far as known.
std::uint64_t shape_key(const launch_shape& shape, std::uint32_t limit);

}  // namespace outboard::frontend::cuda
