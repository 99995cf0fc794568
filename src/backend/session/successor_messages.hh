// What daemon and worker say to each other about a session that leaves its worker (successor.hh). Values.
#pragma once

#include <cstdint>

#include "backend/daemon/control_body.hh"

namespace outboard::backend {

/// control_kind::leave: with an end of what leads to the other worker.
struct leave_message {
  std::uint32_t milliseconds = 0;  ///< how long the session may be held up by work that is under way
  OUTBOARD_FIELDS(milliseconds)
};

}  // namespace outboard::backend
