// Memory objects that count, tried again as CUDA's allocations are (backend/session/with_room.hh). With
// the turn.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/opencl/session.hh"
#include "backend/session/with_room.hh"

namespace outboard::backend::opencl {

/// `allocate` makes an object of so many bytes in the context, which are counted in `held` by then.
template <class Allocate>
cl_int with_room(call& c, cl_context context, std::uint64_t bytes, std::shared_ptr<memory_ledger::hold>& held,
                 Allocate&& allocate) {
  const cl_int full = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  const auto attempt = [&]() -> cl_int {
    if (!held) held = own(c).count(context, bytes);
    return held ? allocate() : full;
  };
  return backend::with_room(c.core, full, attempt, [&] { return own(c).room_for(context, bytes); });
}

}  // namespace outboard::backend::opencl
