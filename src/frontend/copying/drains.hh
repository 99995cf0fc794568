// Copies that nobody waits for, to page-locked memory of the program, where this process and the server share
// memory. The device writes each piece into a block that both have mapped, then a word. Threads of this
// process copy the piece to its place and write another word; the device waits for it before it uses the
// block again. So streams make progress whatever the program does, and the bytes of a copy are in place
// before its completion is reported. Owned by the session. Any thread; a forked child has none of the threads
// and must not ask.
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
  /// The pieces of one stream finish in order.
  struct stream_key {
    std::uint64_t context = 0, stream = 0, lane = 0;
    auto operator<=>(const stream_key&) const = default;
  };
  struct piece {
    std::uint32_t *done = nullptr, *freed = nullptr;  ///< the device writes `value` to `done`, we to `freed`
    std::uint32_t value = 0;
    /// The block, in the file that both sides have mapped. It is read from the file, not copied from the
    /// mapping: if the program has unmapped the destination, the read fails here without a fault. Natively
    /// the device's write would not fault the program either.
    std::shared_ptr<const unique_fd> file;
    std::uint64_t offset = 0;
    std::span<std::byte> place;
  };

  static std::shared_ptr<drains> make(int threads) { return std::shared_ptr<drains>(new drains(threads)); }
  drains(const drains&) = delete;

  /// Call before the device is asked for the piece. Returns false if there are no threads for it; then
  /// nothing was done.
  bool add(const stream_key& of, piece made);
  /// Removes the piece that was added last, because the device will not be asked for it.
  void take_back(const stream_key& of);

  /// True while there are pieces that are not in their place yet.
  bool pending() const { return pending_.load(std::memory_order_acquire) != 0; }
  bool pending_in(std::uint64_t context) const;
  /// Are bytes still due to arrive in this memory?
  bool touch(std::span<const std::byte> memory) const;

  /// Delivers everything that the device has finished by now, before it returns.
  void collect();
  /// Returns when all bytes due in this memory are there, or will never come.
  void await(std::span<const std::byte> memory);

  /// The context is gone: nothing more is delivered for it after this returns.
  void drop(std::uint64_t context);
  /// The memory is the program's again: nothing more is delivered to it after this returns. True if something
  /// was due there.
  bool drop_to(std::span<const std::byte> memory);
  void drop_all();

 private:
  explicit drains(int threads) : most_threads_(threads) {}

  struct numbered {
    std::uint64_t number = 0;
    stream_key of;
    piece what;
  };
  static bool is_done(const piece& p);
  static bool meet(std::span<const std::byte> a, std::span<const std::byte> b);
  bool touch_locked(std::span<const std::byte> memory) const;
  /// `blocked`: there is a finished piece, but another one is being delivered to the same place.
  numbered* take_done(std::uint64_t highest, bool& blocked);
  std::uint64_t highest_done() const;
  void deliver(std::unique_lock<std::mutex>& lock, numbered& taken);
  template <class Which>
  void drop_where(Which&& which);
  void start_threads();
  void work();

  const int most_threads_;
  std::atomic<std::size_t> pending_{0};
  mutable std::mutex mutex_;  // guards what follows; not held while bytes are copied
  std::condition_variable added_, landed_;
  std::map<stream_key, std::deque<numbered>> queues_;
  std::vector<std::unique_ptr<numbered>> delivering_;  ///< being delivered at this moment
  std::uint64_t last_number_ = 0;
  int threads_ = 0;
  bool looking_ = false;  ///< one thread looks for finished pieces; the others sleep
};

}  // namespace outboard::frontend
