// Allocations that fail for lack of memory are tried again when a session whose client is away has given way:
// nobody's allocation fails because another one's client may come back. With the turn.
#pragma once

#include <cstdint>

#include "backend/call.hh"
#include "backend/session_core.hh"

namespace outboard::backend {

/// `allocate` leaves nothing behind when it fails. What is more than the session may have, or than there is,
/// makes nobody give way.
template <class Allocate>
CUresult with_room(call& c, std::int32_t device, std::uint64_t bytes, Allocate&& allocate) {
  CUresult code = allocate();
  while (code == CUDA_ERROR_OUT_OF_MEMORY && c.session.may_hold(device, bytes) &&
         c.session.make_room(device, bytes))
    code = allocate();
  return code;
}

}  // namespace outboard::backend
