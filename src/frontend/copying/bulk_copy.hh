// Copies of much memory that nobody reads soon. Free functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outboard::frontend {

/// Like memcpy, but bypasses the caches where the processor can: the destination is not fetched first, which
/// saves a third of the traffic. For memory larger than the caches. Other threads see the bytes after a
/// release and an acquire, and devices see them too.
void copy_past_caches(void* to, const void* from, std::size_t size);

/// Copies one piece of a copy of `whole` bytes; bypasses the caches if they cannot hold it all.
void copy_piece(void* to, const void* from, std::size_t size, std::uint64_t whole);

}  // namespace outboard::frontend
