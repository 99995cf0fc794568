// Whether kernels may have printed something that the driver still holds: it gives that out when one waits
// for the device by its own functions, not when one asks whether work is done, and such a wait costs 2 us
// more. Any thread; what is said with the session's turn is in the order of the requests.
#pragma once

#include <atomic>
#include <cstdint>

namespace outboard::backend {

class unseen_output {
 public:
  /// A mark that says nothing.
  static constexpr std::uint64_t unknown = ~0ull;

  /// Code was loaded whose kernels may print.
  void code_prints() { prints_.store(true, std::memory_order_relaxed); }

  /// Kernels were launched in the context; with the turn.
  void launched(std::uint64_t context) {
    if (context_ == 0) context_ = context;
    if (context_ != context) context_ = elsewhere;
    launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// ... in no one knows which contexts.
  void launched_anywhere() { launched(elsewhere); }

  bool possible() const {
    return prints_.load(std::memory_order_relaxed) &&
           launches_.load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed);
  }

  /// What was launched so far, for waited(); with the turn.
  std::uint64_t mark(std::uint64_t context) const {
    return context == context_ ? launches_.load(std::memory_order_relaxed) : unknown;
  }
  /// The driver has waited for all that the context had to do when the mark was taken, and what it gave out
  /// is on its way to the client. Two such waits at once may leave less seen than was, never more.
  void waited(std::uint64_t mark) {
    if (mark != unknown) seen_.store(mark, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t elsewhere = ~0ull;

  std::atomic<bool> prints_{false};
  std::atomic<std::uint64_t> launches_{0}, seen_{0};
  std::uint64_t context_ = 0;  // of all launches; elsewhere: of several
};

}  // namespace outboard::backend
