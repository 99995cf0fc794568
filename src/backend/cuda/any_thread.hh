// Which requests do the same on whichever thread of the worker they are made: then the thread that has read
// one need not hand it to the one that stands for the program's.
#pragma once

#include <cstddef>
#include <span>

#include "wire/frame.hh"

namespace outboard::backend {

/// Posts on streams that are no thread's own. The driver keeps for a thread its current context (entered for
/// each request), its capture mode (which forbids nothing of these) and its own default stream.
bool any_thread_may(const wire::frame_header& header, std::span<const std::byte> payload);

/// The stream of a posted launch that concerns nothing but this stream, which is no default one; 0: it is
/// none, or records events that other streams may wait for.
std::uint64_t lone_launch_stream(const wire::frame_header& header, std::span<const std::byte> payload);

}  // namespace outboard::backend
