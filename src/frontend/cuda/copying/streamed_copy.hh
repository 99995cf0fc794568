// Large copies between memory of the program's and a device where no memory is shared with the server:
// several threads move their bytes over several connections beside the session's. One copy at a time for each
// context; a copy that finds the connections taken goes the ordinary way. Any thread.
#pragma once

#include <optional>

#include "frontend/cuda/copying/staged_copy.hh"

namespace outboard::frontend::cuda {

/// Copies of at least so many bytes are worth it.
inline constexpr std::uint64_t least_streamed = 512u << 10;

/// As stage_in() and stage_out(); the host's memory may be page-locked, if the copy to it is synchronous.
std::optional<CUresult> stream_in(lane& own, const staged_copy& copy);
std::optional<CUresult> stream_out(lane& own, const staged_copy& copy);

/// Before a copy to page-locked memory that the program does not wait for: where much is copied so, it opens
/// connections over which the server then sends the bytes of such copies.
void stream_later(lane& own, const staged_copy& copy);

}  // namespace outboard::frontend::cuda
