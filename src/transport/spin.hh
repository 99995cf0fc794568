// Spinning before sleeping: a wake-up costs several microseconds, polling in vain costs a core. Any thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "transport/transport.hh"

namespace outboard::transport {

/// What upper layers should pass to connection::set_spin(): 0 on machines with at most two cores for this
/// process, where the spinner would be in its peer's way, else 50 us.
std::chrono::microseconds default_spin();

/// default_spin() for a thread that has asked and waits for the answer: 1 ms. A driver's own waits look
/// indefinitely, and sleeping at both ends makes a wait of 0.6 ms a tenth longer (measured,
/// docs/performance.md).
inline std::chrono::microseconds answer_spin() { return 20 * default_spin(); }

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

/// Tracks whether spinning has paid off recently, per receiver.
class spin_habit {
 public:
  bool worth() const { return credit_ > 0; }
  /// Records a finished wait and its length; the event that woke a sleeper came a little earlier.
  void waited(std::chrono::nanoseconds time, std::chrono::microseconds budget) {
    constexpr auto wake_up = std::chrono::microseconds(20);
    credit_ = time <= budget + wake_up ? std::min(credit_ + 2, most) : std::max(credit_ - 1, 0);
  }

 private:
  static constexpr int most = 8;
  int credit_ = most;
};

/// One bounded spin, which starts on construction. It counts among the spinners of this process until it is
/// destroyed, and allows nothing when half of the cores spin already. From 200 us on it lets others have the
/// core.
class spin {
 public:
  spin(std::chrono::microseconds budget, deadline until);
  ~spin();
  spin(const spin&) = delete;
  spin& operator=(const spin&) = delete;

  /// Pauses for an instant; returns false when the budget or the deadline is used up.
  bool again();

 private:
  bool counted_ = false, yields_ = false;
  unsigned pauses_ = 0;
  deadline yields_from_, end_;
};

}  // namespace outboard::transport
