// A launch from the forms in which a program gives it into those that travel (marshal/cuda/launch_bodies.hh).
// The chapter's own, and of those that send parts of one: occupancy, graph nodes. Values and free functions
// that take no memory; any thread.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "api/cuda/headers.hh"
#include "marshal/cuda/kernel_table.hh"
#include "marshal/cuda/launch_bodies.hh"

namespace outboard::frontend::cuda {

/// The attributes of one launch as they travel. On the stack of its thread: only the bytes of the attributes
/// that there are get written.
class travelling_attributes {
 public:
  /// At most marshal::max_launch_attributes (check_attributes() refuses more).
  explicit travelling_attributes(std::span<const CUlaunchAttribute> given);
  marshal::launch_attributes list() const {
    return marshal::launch_attributes::of_bytes(std::span(bytes_).first(used_));
  }

 private:
  std::size_t used_ = 0;
  std::array<std::byte, marshal::max_launch_attributes * sizeof(marshal::launch_attribute)> bytes_;
};

/// Each value at its offset in `room`, which is zero and as large as the kernel's parameters. `values` holds
/// a pointer for each of them.
void pack_parameters(std::span<std::byte> room, std::span<const marshal::kernel_parameter> layout,
                     void* const* values);

/// The packed buffer named by cuLaunchKernel's `extra`; nothing: the list is not one (a length without a
/// buffer, an unknown key, no end).
std::optional<std::span<const std::byte>> packed_buffer(void* const* extra);

}  // namespace outboard::frontend::cuda
