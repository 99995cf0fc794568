// Launches that a lane's own thread makes while another one has the turn: threads of a program that launch on
// streams of their own do so at once on a driver too. Whoever has the turn reads a launch and leaves it here
// as it came; the lane's thread, which looks for a while before it sleeps, finds out what it names and makes
// it. Everything else waits until none is left (session_core::finish_side_launches()), so nobody sees another
// order, and what such a thread reads in the session's tables does not change meanwhile. Where that goes on,
// the lane that reads leaves the reading to the thread that stands by, and its own launches to itself: it
// would be behind the others by all that it reads for them.
//
// One writer, whoever has the turn; one reader, the lane's thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "wire/frame.hh"

namespace outboard::backend {

/// A frame read off the connection for a lane.
struct frame {
  wire::frame_header header;
  std::vector<std::byte> payload;
};

class side_launches {
 public:
  /// How long the lane's thread looks for another one before it sleeps.
  static constexpr std::chrono::microseconds patience{50};

  // With the turn:

  /// Before the lane's thread is called for the first time.
  void make_room() { slots_.resize(depth); }
  /// Does the lane's thread look, or will it before it sleeps?
  bool open() const { return awake_.load(std::memory_order_seq_cst); }
  bool pending() const {
    return done_.load(std::memory_order_acquire) != put_.load(std::memory_order_relaxed);
  }
  bool has_room() const {
    return put_.load(std::memory_order_relaxed) - done_.load(std::memory_order_acquire) < depth;
  }
  /// May the stream have launches among those that are pending?
  bool names(std::uint64_t stream) const {
    return pending() &&
           std::find(streams_.begin(), streams_.begin() + used_, stream) != streams_.begin() + used_;
  }
  /// Is there room to remember one more stream? Only of those that are pending.
  bool remember(std::uint64_t stream) {
    if (!pending()) used_ = 0;
    if (std::find(streams_.begin(), streams_.begin() + used_, stream) != streams_.begin() + used_)
      return true;
    if (used_ == streams_.size()) return false;
    streams_[used_++] = stream;
    return true;
  }
  /// Takes the frame in, and gives another one's memory for it. False: the lane's thread has gone to sleep
  /// meanwhile and must be called.
  [[nodiscard]] bool put(frame& taken) {
    const std::uint64_t at = put_.load(std::memory_order_relaxed);
    std::swap(slots_[at % depth], taken);
    put_.store(at + 1, std::memory_order_seq_cst);
    return open();  // partner: sleep()
  }

  // Of the lane's thread:

  void wake() { awake_.store(true, std::memory_order_seq_cst); }
  /// False: something has come, go on.
  bool sleep() {
    awake_.store(false, std::memory_order_seq_cst);
    if (!front()) return true;  // partner: put()
    wake();
    return false;
  }
  const frame* front() const {
    const std::uint64_t done = done_.load(std::memory_order_relaxed);
    return put_.load(std::memory_order_seq_cst) == done ? nullptr : &slots_[done % depth];
  }
  void pop() { done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  /// Threads of a program that share a lock get it many times in a row each: whoever reads must not wait for
  /// one lane while the others have nothing to do.
  static constexpr std::size_t depth = 512;

  std::vector<frame> slots_;
  std::array<std::uint64_t, 4> streams_{};
  std::size_t used_ = 0;
  alignas(64) std::atomic<std::uint64_t> put_{0};
  alignas(64) std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> awake_{false};
};

/// Do several lanes launch at the same time? Of the session, with its turn.
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
