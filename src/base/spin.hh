// Waiting awake for a moment before sleeping: a wake-up costs several microseconds, in a virtual machine tens
// of them; a wait in vain costs a core. Any thread.
#pragma once

#include <chrono>
#include <thread>

namespace outboard {

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

/// What may be spun away at once: `wanted`, or nothing where cores are scarce and the spinner would stand in
/// the way of the one it waits for.
inline std::chrono::microseconds spin_budget(std::chrono::microseconds wanted) {
  static const bool cores_to_spare = std::thread::hardware_concurrency() > 2;
  return cores_to_spare ? wanted : std::chrono::microseconds(0);
}

/// Asks at least once, until the answer is yes or the budget is used up; gives the last answer.
template <class Arrived>
bool spin_until(Arrived&& arrived, std::chrono::microseconds budget) {
  constexpr int pauses = 8;  // reading the clock costs as much as a few of them
  if (arrived()) return true;
  const auto until = std::chrono::steady_clock::now() + budget;
  while (std::chrono::steady_clock::now() < until) {
    for (int n = 0; n < pauses; ++n) {
      spin_pause();
      if (arrived()) return true;
    }
  }
  return false;
}

}  // namespace outboard
