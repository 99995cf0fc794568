// The lock of cuCheckpointProcessLock: while it is held, the program's calls wait at their entry.
// Process-wide; any thread. Costs a call one relaxed load.
#pragma once

#include <atomic>
#include <chrono>

namespace outboard::frontend::cuda {

class api_lock {
 public:
  static bool held() { return held_.load(std::memory_order_relaxed); }
  /// A call begins: returns once the lock is not held.
  static void pass() {
    if (held()) [[unlikely]]
      wait();
  }
  static bool take();     ///< false: it is held already
  static bool release();  ///< false: it is not held

  /// The server also knows of the lock, and another process may release it: waiting threads ask `is_over` now
  /// and then.
  static void watch(bool (*is_over)());

 private:
  static void wait();
  static std::atomic<bool> held_;
};

}  // namespace outboard::frontend::cuda
