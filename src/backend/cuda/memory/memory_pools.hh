// What the handlers of pools tell the ledger. With the turn.
#pragma once

#include "backend/cuda/call.hh"

namespace outboard::backend {

/// What the session's pools have taken from the device; where the driver does not tell, what they handed out.
std::uint64_t bytes_of_pools(call& c);

/// Before memory that a pool gave out at this address is freed: drops the mirrors of managed memory in it.
void drop_variables_of_pool(call& c, std::uint64_t address);

}  // namespace outboard::backend
