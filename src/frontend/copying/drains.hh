// Copies to page-locked memory of the program's that nobody waits for, where this process and the server
// share memory. The device writes each piece into a block that both have, then a word. Threads of this
// process carry the piece to its place and write another word, for which the device waits before it uses the
// block again. So streams make progress whatever the program does, and a copy that is reported as complete is
// in its place. Owned by the session. Any thread; a forked child has none of the threads and must not ask.
#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/fd.hh"

namespace outboard::frontend {

class drains : public std::enable_shared_from_this<drains> {
 public:
  /// Pieces of one stream are complete in their order.
  struct stream_key {
    std::uint64_t context = 0, stream = 0, lane = 0;
    auto operator<=>(const stream_key&) const = default;
  };
  struct piece {
    std::uint32_t *done = nullptr, *freed = nullptr;  ///< the device writes `value` to one, we to the other
    std::uint32_t value = 0;
    /// The block in the file that both sides have mapped. It is read, not copied from the mapping: if the
    /// program has unmapped the place, that is an error here, as natively the device hits nothing of the
    /// program's.
    std::shared_ptr<const unique_fd> file;
    std::uint64_t offset = 0;
    std::span<std::byte> place;
  };

  static std::shared_ptr<drains> make(int threads) { return std::shared_ptr<drains>(new drains(threads)); }
  drains(const drains&) = delete;

  /// Before the device is asked for it. False: there are no threads for it; nothing was done.
  bool add(const stream_key& of, piece made);
  /// The device will not be asked for the one added last.
  void take_back(const stream_key& of);

  /// Pieces that are not in their place yet.
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }
  bool pending_in(std::uint64_t context) const;
  /// Will bytes come into this memory?
  bool touch(std::span<const std::byte> memory) const;

  /// All that the device is done with now is in its place when this returns.
  void collect();
  /// What comes into this memory is there when this returns, or never comes.
  void await(std::span<const std::byte> memory);

  /// The context has gone: nothing is carried any more, when this returns.
  void drop(std::uint64_t context);
  void drop_all();

 private:
  explicit drains(int threads) : most_threads_(threads) {}

  struct numbered {
    std::uint64_t number = 0;
    stream_key of;
    piece what;
  };
  static bool is_done(const piece& p);
  bool touch_locked(std::span<const std::byte> memory) const;
  /// `blocked`: there is one, but another that goes to the same place is being carried.
  numbered* claim(std::uint64_t highest, bool& blocked);
  std::uint64_t highest_done() const;
  void carry(std::unique_lock<std::mutex>& lock, numbered& claimed);
  template <class Which>
  void drop_where(Which&& which);
  void start_threads();
  void work();

  const int most_threads_;
  std::atomic<std::size_t> pending_{0};
  mutable std::mutex mutex_;  // guards what follows; not held while bytes are carried
  std::condition_variable added_, landed_;
  std::map<stream_key, std::deque<numbered>> queues_;
  std::vector<std::unique_ptr<numbered>> carried_;  ///< at this moment
  std::uint64_t last_number_ = 0;
  int threads_ = 0;
  bool looking_ = false;  ///< a thread looks for what is done; the others sleep
};

}  // namespace outboard::frontend
