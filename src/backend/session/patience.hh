// How long a request that may block looks whether the device is done, before it gives its turn up and sleeps
// in the driver. Any thread.
#pragma once

#include <chrono>
#include <thread>

namespace outboard::backend {

/// Most waits of real programs end within it, and a hand-off costs more. Not where cores are scarce. `alone`:
/// the session has no other thread that would have to wait so long; a driver looks for ever then.
inline std::chrono::microseconds spin_budget(bool alone) {
  static const bool cores_to_spare = std::thread::hardware_concurrency() > 2;
  return std::chrono::microseconds(!cores_to_spare ? 0 : alone ? 200 : 40);
}

/// Asks at least once, until the answer is no or the budget, which is asked for then, is used up.
template <class Budget, class Query>
void spin_while(Budget&& budget, Query&& still_busy) {
  if (!still_busy()) return;
  const auto until = std::chrono::steady_clock::now() + budget();
  while (std::chrono::steady_clock::now() < until && still_busy()) {
  }
}

}  // namespace outboard::backend
