// Where the multiprocessors of the current context's device lie on its board: asked of the server. Any
// thread.
#pragma once

#include <cstdint>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {

/// Two bytes for each pair of multiprocessors, in blocks of malloc(). CUDA_ERROR_NOT_SUPPORTED: the device
/// does not tell.
CUresult board_layout(std::uint8_t** clusters, std::uint8_t** numbers);

}  // namespace outboard::frontend::cuda
