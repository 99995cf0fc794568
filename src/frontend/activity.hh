// Tells whether anything can have happened since the device was last seen idle: a thread that waits for idle
// work again need not ask the server. Any thread. Counts are spread, so that threads that launch do not share
// a cache line.
//
// A request counts once it is under way and before the program learns of it. So every mark taken after a
// request has it, if a later wait would have to cover it, and no mark taken before a wait has a request that
// overlaps the wait.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace outboard::frontend {

class activity {
 public:
  void note(std::uint32_t lane) {
    counts_[lane % counts_.size()].value.fetch_add(1, std::memory_order_release);  // partner: mark()
  }

  /// Between two equal marks nothing was asked of the server. Never 0.
  std::uint64_t mark() const {
    std::uint64_t sum = 1;
    for (const count& c : counts_) sum += c.value.load(std::memory_order_acquire);
    return sum;
  }

 private:
  struct alignas(64) count {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<count, 8> counts_;
};

/// The mark at which something (a stream, an event, a context) was last seen to have nothing left to do.
class idle_mark {
 public:
  bool holds(std::uint64_t mark) const { return mark_.load(std::memory_order_relaxed) == mark; }
  void keep(std::uint64_t mark) { mark_.store(mark, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> mark_{0};
};

}  // namespace outboard::frontend
