// Small posts that wait a moment for others, where every send is a system call: a burst leaves in a few
// writes. The first work after an answer never waits, and a request that waits for an answer takes along what
// is gathered. A thread of ours sends the rest. It is made for the first burst and sleeps between bursts.
// Nothing stays longer than two of its sleeps, and the program's threads neither write nor wait for a write
// meanwhile. Owned by the session. Functions marked "with the sender's lock" belong to the thread that holds
// it; the rest are for any thread.
#pragma once

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
  work,      ///< the device may be idle until it comes: waits only in a burst
  light,     ///< begins nothing that anybody waits for: waits a moment
  followed,  ///< the same thread sends another request at once: waits until then
};

class outbox {
 public:
  using clock = std::chrono::steady_clock;

  /// How long the thread sleeps during bursts. A write takes 4 us over TCP; a program that wrote, or waited
  /// for a write, would lose that time between two launches.
  static constexpr std::chrono::microseconds nap{50};
  /// Posts gathered for this long leave with the next post, because the thread does not get to run.
  static constexpr std::chrono::microseconds late{200};
  /// Work that comes this long after the work before it is no longer part of a burst.
  static constexpr std::chrono::microseconds quiet{500};
  /// A write of this size is as efficient as a larger one.
  static constexpr std::size_t enough = 16u << 10;
  /// Larger frames are written alone; smaller ones are copied faster than written (a kernel's arguments with
  /// tensor maps among them take some KiB; such a launch took 11 us).
  static constexpr std::size_t small = 8u << 10;

  /// `look`: sends what is gathered, taking the sender's lock only for as long as leave() needs, and says
  /// whether there was anything. The outbox's thread runs it.
  explicit outbox(std::function<bool()> look) : look_(std::move(look)) {}
  ~outbox();
  outbox(const outbox&) = delete;
  outbox& operator=(const outbox&) = delete;

  // With the sender's lock:

  /// Gathers a post: the thread will send it, or the caller if it is due(). Returns false if the caller must
  /// send it now, behind what is gathered.
  bool take(std::initializer_list<std::span<const std::byte>> frame, pace how, clock::time_point now);
  bool due(clock::time_point now) const {
    return !gathered_.empty() && (gathered_.size() >= enough || now - oldest_ >= late);
  }
  /// To be sent before anything else.
  std::span<const std::byte> gathered() const { return gathered_; }
  /// What was gathered is sent, or no longer to be sent, together with a request that `waits` for an answer.
  void clear(bool waits) {
    gathered_.clear();
    if (waits) in_a_row_ = 0;
  }
  /// Hands over what is gathered, for the thread to send; valid until it asks again.
  std::span<const std::byte> leave() {
    leaving_.swap(gathered_);
    gathered_.clear();
    return leaving_;
  }

  /// May there be another sender besides the thread that has the lock?
  bool has_thread() const { return thread_.joinable(); }

  // Any thread:

  /// From now on nothing is gathered. Does not wait for the thread.
  void stop();

 private:
  bool has_help();
  void work();

  std::function<bool()> look_;

  std::vector<std::byte> leaving_;   // the thread's; leave() fills it
  std::vector<std::byte> gathered_;  // used with the sender's lock, like what follows
  clock::time_point oldest_{}, last_work_{};
  unsigned in_a_row_ = 0;  ///< consecutive work that was sent alone, each soon after the one before
  bool given_up_ = false;  ///< the process may not start more threads

  std::mutex mutex_;  // guards what follows; taken after the sender's lock, never before it
  std::condition_variable wanted_;
  bool awake_ = false, asked_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace outboard::frontend
