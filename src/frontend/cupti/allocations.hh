// Memory that a call of the driver has allocated or is about to release, as the front-end's books know it. On
// the thread that calls.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/call_watch.hh"
#include "frontend/memory/address_table.hh"

namespace outboard::frontend::cupti {

/// After a call that allocates (functions.hh) and has succeeded. Nothing: what it gave is no memory yet, as
/// in a stream's capture.
std::optional<memory_block> allocated_by(const tool_call& call);
/// Before a call that releases. Nothing: the books have no such block.
std::optional<memory_block> released_by(const tool_call& call);

/// A pool of memory.
struct known_pool {
  std::int32_t device = 0;
  bool imported = false;
};
/// Nothing for a pool that is gone or never was.
known_pool known_pool_at(std::uint64_t handle);

}  // namespace outboard::frontend::cupti
