// Spinning before sleeping: a wake-up costs several microseconds, a poll in vain costs a core. Any thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "transport/transport.hh"

namespace outboard::transport {

/// What upper layers should give to connection::set_spin(): 0 on machines with at most two cores for this
/// process, where the spinner would stand in its peer's way, else 50 us.
std::chrono::microseconds default_spin();

/// The same for whoever has asked and waits for the answer, 1 ms: a driver's own waits look for ever, and to
/// sleep at both ends makes a wait of 0.6 ms a tenth longer (docs/results/2026-11-22-h200-waits.md).
inline std::chrono::microseconds answer_spin() { return 20 * default_spin(); }

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

/// Has it been worth while to spin, of late? Of one receiver.
class spin_habit {
 public:
  bool worth() const { return credit_ > 0; }
  /// A wait is over, and took so long; what woke a sleeper was there a little before.
  void waited(std::chrono::nanoseconds time, std::chrono::microseconds budget) {
    constexpr auto wake_up = std::chrono::microseconds(20);
    credit_ = time <= budget + wake_up ? std::min(credit_ + 2, most) : std::max(credit_ - 1, 0);
  }

 private:
  static constexpr int most = 8;
  int credit_ = most;
};

/// One bounded spin. Starts on construction; counts among the spinners of this process until it dies, and
/// allows nothing when half of the cores spin already. A long one lets others have the core from 200 us on.
class spin {
 public:
  spin(std::chrono::microseconds budget, deadline until);
  ~spin();
  spin(const spin&) = delete;
  spin& operator=(const spin&) = delete;

  /// Pauses for an instant; false when the budget or the deadline is used up.
  bool again();

 private:
  bool counted_ = false, yields_ = false;
  unsigned pauses_ = 0;
  deadline yields_from_, end_;
};

}  // namespace outboard::transport
