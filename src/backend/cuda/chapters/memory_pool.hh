// What the handlers of pools tell the ledger. With the turn.
#pragma once

#include "backend/cuda/call.hh"

namespace outboard::backend {

/// What the session's pools have taken from the device; where the driver does not tell, what they handed out.
std::uint64_t bytes_of_pools(call& c);

}  // namespace outboard::backend
