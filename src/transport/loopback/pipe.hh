// One direction of a loopback connection: a bounded ring of bytes and the descriptors that travel with them.
// Shared by the two ends. Any thread may call any function, but there is at most one reader and one writer at
// a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "base/fd.hh"
#include "transport/transport.hh"

namespace outboard::transport {

class pipe {
 public:
  explicit pipe(std::size_t capacity)
      : ring_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  /// Returns done, timed_out, or broken when an end is gone.
  io_result write(std::span<const std::byte> from, deadline until);
  /// Writes one byte that carries `descriptor`.
  io write_carrier(std::byte byte, unique_fd descriptor);

  io_result read(std::span<std::byte> into, deadline until);
  io wait_readable(deadline until);
  /// Reads one byte; `descriptor` stays empty if it carried none.
  io read_carrier(unique_fd& descriptor, deadline until);
  /// Ends the reader's current or next wait once.
  void interrupt();
  /// Tells without the lock whether read() would return at once or an interrupt is pending. For spinning.
  bool stirred() const { return stirred_.load(std::memory_order_acquire); }

  bool writer_is_gone();
  void close_writer();  ///< the reader gets what is there, then closed
  void close_reader();  ///< the writer gets broken
  void cut();           ///< the reader's own side has shut down: it gets broken at once

 private:
  struct carrier {
    std::uint64_t position;  ///< position of the byte in the stream
    unique_fd descriptor;
  };

  io wait_for_bytes(std::unique_lock<std::mutex>& lock, deadline until);
  io wait_for_room(std::unique_lock<std::mutex>& lock, deadline until);
  void put(std::span<const std::byte> from);
  void take(std::span<std::byte> into);
  void note_state();

  std::mutex mutex_;
  std::condition_variable readable_, writable_;
  std::unique_ptr<std::byte[]> ring_;  // pages are touched when bytes come, so idle pipes cost none
  std::size_t capacity_;
  std::uint64_t written_ = 0, read_ = 0;
  std::deque<carrier> carriers_;
  bool writer_gone_ = false, reader_gone_ = false, cut_ = false, interrupted_ = false;
  std::atomic<bool> stirred_{false};
};

}  // namespace outboard::transport
