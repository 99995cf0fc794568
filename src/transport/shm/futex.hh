// Sleeping on a word of memory that several processes share. A wake-up wakes all threads that sleep on the
// word. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/transport.hh"

namespace outboard::transport::shm {

/// Returns when the word is not `value`, on a wake-up, at `until`, or spuriously.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, deadline until);

/// Sets the word to 0; makes a system call only if it was not 0.
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace outboard::transport::shm
