// Small posts that wait a moment for others where every send is a system call: a burst leaves in a few
// writes. The first work after an answer never waits, and whatever waits for an answer takes along what is
// gathered. The rest goes with a later post, and the last of a burst with a thread of ours, which is made for
// the first burst and sleeps between them: so nothing stays longer than two sleeps of it. Owned by the
// session. What says "with the sender's lock" belongs to whoever may send; the rest to any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
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
};

class outbox {
 public:
  using clock = std::chrono::steady_clock;

  /// Gathered for so long, posts go with the next one: the device is not to run dry, and a write takes 4 us
  /// over TCP.
  static constexpr std::chrono::microseconds usual{15};
  /// How long the thread sleeps while there are bursts.
  static constexpr std::chrono::microseconds nap{50};
  /// A write of this size is as good as a larger one.
  static constexpr std::size_t enough = 16u << 10;
  /// Larger frames are their own write.
  static constexpr std::size_t small = 2u << 10;

  /// `look`: takes the sender's lock, sends if due(), and says whether anything was gathered. Run by the
  /// outbox's thread.
  explicit outbox(std::function<bool()> look) : look_(std::move(look)) {}
  ~outbox();
  outbox(const outbox&) = delete;
  outbox& operator=(const outbox&) = delete;

  // With the sender's lock:

  /// Takes a post in, to be sent once due(). False: it is to be sent now, behind what is gathered.
  bool take(std::span<const std::byte> header, std::span<const std::byte> payload, pace how,
            clock::time_point now);
  bool due(clock::time_point now) const {
    return !gathered_.empty() && (gathered_.size() >= enough || now - oldest_ >= usual);
  }
  /// To be sent before anything else.
  std::span<const std::byte> gathered() const { return gathered_; }
  /// What was gathered is sent, or is not to be sent any more, and with it something that `waits` for an
  /// answer.
  void clear(bool waits, clock::time_point now) {
    gathered_.clear();
    last_write_ = now;
    if (waits) in_a_row_ = 0;
  }

  // Any thread:

  /// Nothing is to be gathered any more. Does not wait for the thread.
  void stop();

 private:
  bool has_help();
  void work();

  std::function<bool()> look_;

  std::vector<std::byte> gathered_;  // with the sender's lock, as what follows
  clock::time_point oldest_{}, last_write_{};
  unsigned in_a_row_ = 0;  ///< work that was sent by itself, each soon after the one before
  bool given_up_ = false;  ///< the process may have no more threads

  std::mutex mutex_;  // guards what follows; taken after the sender's lock, never before
  std::condition_variable wanted_;
  bool awake_ = false, asked_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace outboard::frontend
