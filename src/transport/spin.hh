// Spinning before sleeping: a wake-up costs several microseconds, a poll in vain costs a core. Any thread.
#pragma once

#include <chrono>

#include "base/spin.hh"
#include "transport/transport.hh"

namespace outboard::transport {

/// What upper layers should give to connection::set_spin(): 0 on machines with at most two cores for this
/// process, where the spinner would stand in its peer's way, else 50 us.
std::chrono::microseconds default_spin();

/// One bounded spin. Starts on construction; counts among the spinners of this process until it dies, and
/// allows nothing when half of the cores spin already.
class spin {
 public:
  spin(std::chrono::microseconds budget, deadline until);
  ~spin();
  spin(const spin&) = delete;
  spin& operator=(const spin&) = delete;

  /// Pauses for an instant; false when the budget or the deadline is used up.
  bool again();

 private:
  bool counted_ = false;
  deadline end_;
};

}  // namespace outboard::transport
