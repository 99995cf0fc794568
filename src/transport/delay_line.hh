// delay_line: sends through a connection, from its own thread, a fixed time after it was asked to. Part of
// faulty.hh. One sender calls push(); any thread may call stop().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/fd.hh"
#include "transport/transport.hh"

namespace outboard::transport {

class delay_line {
 public:
  delay_line(connection& through, std::chrono::microseconds delay);
  /// Waits until everything under way has been sent, unless stopped; gives up on a peer that accepts nothing
  /// for five seconds.
  ~delay_line();

  /// Copies the parts; waits only while `capacity` bytes are under way.
  io_result push(std::span<const iovec> parts, deadline until);
  /// The descriptor keeps its place among the bytes.
  io push_descriptor(unique_fd descriptor);

  /// Drops everything that is still under way.
  void stop();
  /// Waits until everything pushed has been sent; returns false if sending failed.
  bool flush();

 private:
  static constexpr std::size_t capacity = 64 << 20;

  struct item {
    deadline due;
    std::vector<std::byte> bytes;
    unique_fd descriptor;
  };

  void run();
  io enqueue(std::unique_lock<std::mutex>& lock, item&& next, deadline until);
  bool deliver(const item& next);

  connection& through_;
  const std::chrono::microseconds delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<item> queue_;
  std::size_t under_way_ = 0;
  bool closing_ = false, stopped_ = false, broken_ = false, delivering_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace outboard::transport
