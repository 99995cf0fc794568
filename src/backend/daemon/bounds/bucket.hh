// Limits how often something may happen: a number of times at once, and a number of times a second in the
// long run. A value of its owner; one thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace outboard::backend {

class bucket {
 public:
  using clock = std::chrono::steady_clock;

  /// It starts full.
  bucket(double at_once, double per_second) : most_(at_once), per_second_(per_second), left_(at_once) {}

  bool has(clock::time_point now, double amount = 1) {
    refill(now);
    return left_ >= amount;
  }
  /// Takes the amount, if that much is left.
  bool take(clock::time_point now, double amount = 1) {
    if (!has(now, amount)) return false;
    left_ -= amount;
    return true;
  }
  bool full(clock::time_point now) { return has(now, most_); }

 private:
  void refill(clock::time_point now) {
    if (now <= filled_) return;
    left_ = std::min(most_, left_ + per_second_ * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
  }

  double most_, per_second_, left_;
  clock::time_point filled_{};
};

}  // namespace outboard::backend
