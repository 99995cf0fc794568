// Allocations that fail for lack of memory are tried again when a session whose client is away has given way:
// nobody's allocation fails because another one's client may come back. With the turn.
#pragma once

#include <optional>

#include "backend/session/session_core.hh"

namespace outboard::backend {

/// `attempt` leaves nothing behind when its code is `full`. `needed` says what would have to be freed then;
/// nothing: no other session's memory would help, and nobody gives way.
template <class Code, class Attempt, class Needed>
Code with_room(const session_core& core, Code full, Attempt&& attempt, Needed&& needed) {
  Code code = attempt();
  while (code == full) {
    const std::optional<room_message> room = needed();
    if (!room || !core.make_room(*room)) break;
    code = attempt();
  }
  return code;
}

}  // namespace outboard::backend
