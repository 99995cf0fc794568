// Copies from a device to page-locked memory of the program's own that it does not wait for, where this
// process and the server share memory: they pass through blocks that both have (drains.hh). Any thread.
#pragma once

#include "frontend/cuda/copying/staged_copy.hh"

namespace outboard::frontend::cuda {

/// Copies of at least so many bytes are worth it.
inline constexpr std::uint64_t least_drained = 256u << 10;

struct drained {
  CUresult code = CUDA_SUCCESS;
  std::uint64_t done = 0;  ///< bytes from the beginning on
};
/// What it has not done must go the ordinary way.
drained drain_later(lane& own, const staged_copy& copy);

}  // namespace outboard::frontend::cuda
