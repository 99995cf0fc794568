// How long a request that may block looks whether the device is done, before it gives its turn up and sleeps
// in the driver. Any thread.
#pragma once

#include <chrono>
#include <thread>

namespace outboard::backend {

/// Most waits of real programs end within it, and a hand-off costs more. Not where cores are scarce.
inline std::chrono::microseconds spin_budget() {
  static const bool cores_to_spare = std::thread::hardware_concurrency() > 2;
  return std::chrono::microseconds(cores_to_spare ? 40 : 0);
}

/// Asks at least once, until the answer is no or the budget is used up.
template <class Query>
void spin_while(Query&& still_busy) {
  const auto until = std::chrono::steady_clock::now() + spin_budget();
  while (still_busy() && std::chrono::steady_clock::now() < until) {
  }
}

}  // namespace outboard::backend
