// What the end of a context asks of its page-locked memory. Any thread.
#pragma once

#include <cstdint>

#include "frontend/lane.hh"

namespace outboard::frontend::cuda {

/// The context has ended, and with it the copies to its page-locked memory, which programs may free as they
/// like: bytes that a server still sends for it go nowhere.
void expect_nothing_in_memory_of(lane& own, std::uint64_t context);

}  // namespace outboard::frontend::cuda
