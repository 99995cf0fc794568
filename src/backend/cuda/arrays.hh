// CUDA arrays, mipmapped arrays, texture and surface objects in the worker's tables. With the turn.
#pragma once

#include <cstdint>

#include "backend/cuda/call.hh"

namespace outboard::backend {

/// The context was destroyed or reset, and with it all of these that were made in it.
void forget_arrays_of_context(object_tables& objects, std::uint64_t context);

}  // namespace outboard::backend
