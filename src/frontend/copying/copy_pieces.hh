// What the ways of copying much have in common: how a copy is cut, how its threads share the pieces, and how
// they wait for each other.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "transport/spin.hh"

namespace outboard::frontend {

/// What several threads copy by needs memory, connections, threads: a process that copies little does
/// without.
inline constexpr std::uint64_t worth_preparing = 8u << 20;

/// Pieces small enough that several threads have some, large enough that what a piece costs besides is
/// little.
inline std::uint64_t piece_of(std::uint64_t size, std::uint64_t most) {
  constexpr std::uint64_t page = 4096;
  return std::clamp((size / 8 + page - 1) / page * page, std::uint64_t{64} << 10, most);
}

/// Waiting for the device or another thread: first at once, then with pauses, because the stream may be busy
/// for long. Belongs to one thread.
class patience {
 public:
  void pause() {
    ++rounds_;
    static const bool spins = transport::default_spin().count() > 0;
    if (rounds_ < 2000 && spins) return transport::spin_pause();
    if (rounds_ < 4000) return void(::sched_yield());
    const timespec nap{0, 50'000};
    ::nanosleep(&nap, nullptr);
  }
  void restart() { rounds_ = 0; }
  /// Now and then it is time to ask whether what is waited for will ever come.
  bool doubtful() const { return rounds_ > 4000 && rounds_ % 256 == 0; }

 private:
  unsigned rounds_ = 0;
};

/// The pieces of one copy, which its threads take in their order. `may_begin(n)` says whether piece n can be
/// moved now, `move(n)` does it. Any thread.
class shared_pieces {
 public:
  explicit shared_pieces(std::uint64_t count) : ready_(count) {}

  std::uint64_t count() const { return ready_.size(); }

  /// Until there are none left, or stop().
  template <class MayBegin, class Move>
  void help(MayBegin&& may_begin, Move&& move) {
    for (std::uint64_t n; (n = next_.fetch_add(1)) < count();) {
      for (patience wait; !may_begin(n); wait.pause())
        if (stop_.load(std::memory_order_relaxed)) return;
      move(n);
      ready_[n].store(true, std::memory_order_release);
    }
  }
  /// One piece, if it can be moved now: for the thread that has other things to do as well.
  template <class MayBegin, class Move>
  bool help_once(MayBegin&& may_begin, Move&& move) {
    std::uint64_t n = next_.load();
    if (n >= count() || !may_begin(n) || !next_.compare_exchange_strong(n, n + 1)) return false;
    move(n);
    ready_[n].store(true, std::memory_order_release);
    return true;
  }
  bool is_ready(std::uint64_t n) const { return ready_[n].load(std::memory_order_acquire); }

  /// Threads that wait for a piece return without it.
  void stop() { stop_.store(true, std::memory_order_relaxed); }

 private:
  std::vector<std::atomic<bool>> ready_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stop_{false};
};

/// Pieces of one length, but for the last one.
class even_pieces : public shared_pieces {
 public:
  even_pieces(std::uint64_t size, std::uint64_t piece)
      : shared_pieces((size + piece - 1) / piece), size_(size), piece_(piece) {}

  std::uint64_t offset(std::uint64_t n) const { return n * piece_; }
  std::uint64_t length(std::uint64_t n) const { return std::min(piece_, size_ - offset(n)); }

 private:
  const std::uint64_t size_, piece_;
};

}  // namespace outboard::frontend
