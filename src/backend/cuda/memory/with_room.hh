// Allocations that fail for lack of memory are tried again when a session whose client is away has given way:
// nobody's allocation fails because another one's client may come back. With the turn.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/cuda/call.hh"
#include "backend/session/session_core.hh"

namespace outboard::backend {

/// `attempt` leaves nothing behind when its code is `full`. `needed` says what would have to be freed then;
/// nothing: no other session's memory would help, and nobody gives way.
template <class Code, class Attempt, class Needed>
Code with_room(const session_core& session, Code full, Attempt&& attempt, Needed&& needed) {
  Code code = attempt();
  while (code == full) {
    const std::optional<room_message> room = needed();
    if (!room || !session.make_room(*room)) break;
    code = attempt();
  }
  return code;
}

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
  return with_room(c.session, CUDA_ERROR_OUT_OF_MEMORY, attempt,
                   [&] { return c.session.room_for(device, bytes); });
}

}  // namespace outboard::backend
