// Moments of std::chrono::steady_clock as numbers, for records that travel or are counted by the million. Any
// thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace outboard {

/// Nanoseconds since the clock's own beginning.
inline std::int64_t steady_nanoseconds(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}
inline std::int64_t steady_nanoseconds() { return steady_nanoseconds(std::chrono::steady_clock::now()); }

}  // namespace outboard
