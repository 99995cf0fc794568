// Attributes of cuLaunchKernelEx as they travel: id and 64 bytes each, handles inside checked. Any thread.
#pragma once

#include <span>

#include "api/cuda/headers.hh"
#include "frontend/cuda/code/launch_shape.hh"
#include "wire/cursor.hh"

namespace outboard::frontend::cuda {

/// CUDA_SUCCESS, or the code of an attribute that cannot be sent; fills in what `shape` learns from them.
CUresult check_attributes(std::span<const CUlaunchAttribute> attributes, launch_shape& shape);

/// Whether the driver may refuse one of them at once: then the launch waits for its word.
bool odd_attributes(std::span<const CUlaunchAttribute> attributes);

/// u64 count, then marshal::launch_attribute each.
void put_attributes(wire::writer& w, std::span<const CUlaunchAttribute> attributes);

}  // namespace outboard::frontend::cuda
