// Allocations of CUDA's memory, tried again as session/with_room.hh says. With the turn.
#pragma once

#include <cstdint>

#include "backend/cuda/call.hh"
#include "backend/cuda/session.hh"
#include "backend/session/with_room.hh"

namespace outboard::backend {

/// `bytes` of a device, once the session's limits admit them; -1: of no device, which nothing limits.
template <class Allocate>
CUresult with_room(call& c, std::int32_t device, std::uint64_t bytes,
                   CUresult (quota::*admit)(std::int32_t device, std::uint64_t bytes), Allocate&& allocate) {
  // Once: what was admitted stays claimed until the request is over.
  CUresult admitted = device < 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  const auto attempt = [&] {
    if (admitted != CUDA_SUCCESS) admitted = (c.session.limits().*admit)(device, bytes);
    return admitted == CUDA_SUCCESS ? allocate() : admitted;
  };
  return with_room(c.core, CUDA_ERROR_OUT_OF_MEMORY, attempt,
                   [&] { return c.session.room_for(device, bytes); });
}

}  // namespace outboard::backend
