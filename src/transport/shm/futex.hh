// Sleeping on a word of memory that several processes share. A wake-up wakes all who sleep there. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/transport.hh"

namespace outboard::transport::shm {

/// Returns when the word is not `value`, is woken, at `until`, or for no reason.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, deadline until);

/// Makes the word 0; a system call only if it was not.
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace outboard::transport::shm
