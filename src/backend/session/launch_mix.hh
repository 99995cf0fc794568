// Do several lanes launch at the same time? Then it pays that each makes its own launches (side_launches.hh).
// Of the session, with its turn; reads no clock but the one it is given.
#pragma once

#include <chrono>
#include <cstdint>

namespace outboard::backend {

class launch_mix {
 public:
  /// The lane launches. True: so does another one, and it goes on for longer than a wake-up takes.
  bool note(std::uint32_t lane, std::chrono::steady_clock::time_point now) {
    if (lane != last_) {
      other_ = last_, other_at_ = last_at_;
      last_ = lane;
    }
    last_at_ = now;
    if (other_ == 0 || now - other_at_ > fresh) return together_ = in_a_row_ = 0, false;
    ++in_a_row_;
    return ++together_ > worth_a_wake_up;
  }
  /// Something else was asked.
  void interrupted() { in_a_row_ = 0; }
  /// Has nothing else been asked for so long that it pays if whoever reads does nothing else? The hand-over,
  /// and the one back, take as long as some twenty launches.
  bool goes_on() const { return in_a_row_ > worth_a_reader; }

 private:
  static constexpr auto fresh = std::chrono::milliseconds(2);
  static constexpr unsigned worth_a_wake_up = 32, worth_a_reader = 512;
  std::uint32_t last_ = 0, other_ = 0;
  std::chrono::steady_clock::time_point last_at_{}, other_at_{};
  unsigned together_ = 0, in_a_row_ = 0;
};

}  // namespace outboard::backend
