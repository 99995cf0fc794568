// Copies of much memory that nobody reads soon. Free functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outboard::frontend {

/// As memcpy, past the caches where the processor has a way: what is written is not fetched first, which is a
/// third of the traffic. For memory beyond what caches hold; what was written is there for other threads that
/// learn of it by a release and an acquire, and for devices.
void copy_past_caches(void* to, const void* from, std::size_t size);

/// One piece of a copy of `whole` bytes: what caches cannot hold need not pass through them.
void copy_piece(void* to, const void* from, std::size_t size, std::uint64_t whole);

}  // namespace outboard::frontend
