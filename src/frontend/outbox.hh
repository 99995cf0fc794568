// Small posts that wait a moment for others where every send is a system call, so that a burst leaves in few
// writes. The first work after an answer never waits, and every request that waits for an answer takes along
// what is gathered. A thread of ours sends the rest; it is made for the first burst and sleeps between
// bursts. No post stays longer than two of its sleeps, and the program's threads neither write nor wait for a
// write meanwhile. Owned by the session. Functions marked "with the sender's lock" are for the thread that
// may send; the others are for any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace outboard::frontend {

/// How a post may wait.
enum class pace : std::uint8_t {
  work,      ///< the device may be idle until it comes: only in a burst
  light,     ///< it begins nothing that anybody waits for: a moment
  followed,  ///< the same thread sends another request at once: until then
  awaited,   ///< the program may wait for what it brings, where we do not see it: not at all
};

class outbox {
 public:
  using clock = std::chrono::steady_clock;

  /// How long the thread sleeps while there are bursts: a write takes 4 us over TCP, and the program, if it
  /// wrote or waited for one, would lose that between two launches.
  static constexpr std::chrono::microseconds nap{50};
  /// Posts that were gathered for so long go with the next one: the thread did not get to run.
  static constexpr std::chrono::microseconds late{200};
  /// Work that comes so long after the work before it is no longer a burst.
  static constexpr std::chrono::microseconds quiet{500};
  /// A write of this size is as good as a larger one.
  static constexpr std::size_t enough = 16u << 10;
  /// Larger frames are their own write: smaller ones are copied faster than written (a kernel's arguments, if
  /// there are tensor maps among them, take some KiB; such a launch took 11 us).
  static constexpr std::size_t small = 8u << 10;

  /// `look`: sends what is gathered, taking the sender's lock only for as long as leave() needs, and says
  /// whether there was anything. Run by the outbox's thread.
  explicit outbox(std::function<bool()> look) : look_(std::move(look)) {}
  ~outbox();
  outbox(const outbox&) = delete;
  outbox& operator=(const outbox&) = delete;

  // With the sender's lock:

  /// Takes a post in: the thread will send it, or the caller if it is due(). False: it is to be sent now,
  /// behind what is gathered.
  bool take(std::initializer_list<std::span<const std::byte>> frame, pace how, clock::time_point now);
  bool due(clock::time_point now) const {
    return !gathered_.empty() && (gathered_.size() >= enough || now - oldest_ >= late);
  }
  /// To be sent before anything else.
  std::span<const std::byte> gathered() const { return gathered_; }
  /// What was gathered has been sent, or is no longer to be sent, together with something that `waits` for an
  /// answer.
  void clear(bool waits) {
    gathered_.clear();
    if (waits) answered();
  }
  /// What is gathered, for the thread to send; valid until it asks again.
  std::span<const std::byte> leave() {
    leaving_.swap(gathered_);
    gathered_.clear();
    return leaving_;
  }

  /// Whether there may be another sender than the one that has the lock.
  bool has_thread() const { return thread_.joinable(); }

  // Any thread:

  /// The answer for which the program waited has come; it will wait for what it sends next.
  void answered() { in_a_row_.store(0, std::memory_order_relaxed); }

  /// Ends gathering. Does not wait for the thread.
  void stop();

 private:
  bool has_help();
  void work();

  std::function<bool()> look_;

  std::vector<std::byte> leaving_;   // of the thread; leave() fills it
  std::vector<std::byte> gathered_;  // with the sender's lock, as what follows
  clock::time_point oldest_{}, last_work_{};
  std::atomic<unsigned> in_a_row_{0};  ///< work that was sent by itself, each soon after the one before
  bool given_up_ = false;              ///< the process may have no more threads

  std::mutex mutex_;  // guards what follows; taken after the sender's lock, never before
  std::condition_variable wanted_;
  bool awake_ = false, asked_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace outboard::frontend
