// The message of a launch. It is written and read in this one form, whichever part of it the reader needs.
// Nothing here allocates memory, because programs launch more often than anything else. Values; no thread
// rules.
#pragma once

#include <array>
#include <cstdint>

#include "marshal/fields.hh"
#include "marshal/views.hh"

namespace outboard::marshal {

/// Far above what any device takes (32,764 since Volta), and far below a frame.
inline constexpr std::uint64_t max_parameter_bytes = 64 << 10;
inline constexpr std::size_t max_launch_attributes = 64;

/// CUlaunchAttribute with its padding always zero.
struct launch_attribute {
  std::uint32_t id = 0, padding = 0;
  std::array<std::uint8_t, 64> value{};
};

using launch_attributes = list_view<launch_attribute, max_launch_attributes>;
using launch_parameters = byte_view<max_parameter_bytes>;

/// The beginning of a launch. It may be read alone: take_body() leaves the reader behind it.
struct launch_head {
  std::uint64_t kernel = 0, stream = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  bool per_thread = false, cooperative = false, extended = false;
  OUTBOARD_FIELDS(kernel, stream, grid, block, shared, per_thread, cooperative, extended)
};

/// cuLaunchKernel, cuLaunchKernelEx: `parameters` are packed in the layout that the kernel reads.
struct launch_body {
  launch_head head{};
  launch_attributes attributes{};
  launch_parameters parameters{};
  OUTBOARD_FIELDS(head, attributes, parameters)
};
OUTBOARD_MESSAGE(launch_body)

struct cluster_query_body {
  std::uint64_t kernel = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  launch_attributes attributes{};
  OUTBOARD_FIELDS(kernel, grid, block, shared, attributes)
};
OUTBOARD_MESSAGE(cluster_query_body)

}  // namespace outboard::marshal
