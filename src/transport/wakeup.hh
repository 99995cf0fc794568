// wakeup: lets any thread end another's poll() once, even if the poll has not begun. Owned by a connection or
// listener; any thread may call raise(), one thread at a time wait().
#pragma once

#include <poll.h>

#include <atomic>
#include <span>

#include "base/fd.hh"
#include "base/result.hh"
#include "transport/transport.hh"

namespace outboard::transport {

/// poll() with an absolute deadline; signals do not end it. Returns the count of ready descriptors, 0 when
/// the time is up, -1 with errno set.
int poll_until(std::span<pollfd> fds, deadline until);

/// Moves the descriptor to a high number, where a program is less likely to meet it that relies on low
/// numbers, closes descriptors it does not know or runs out of them. Keeps the number if no high one is free.
unique_fd out_of_the_way(unique_fd fd);

class wakeup {
 public:
  /// The descriptor that wakes a sleeper. It is made first, so that the maker reports it when descriptors run
  /// out.
  static result<unique_fd> make_event();
  explicit wakeup(unique_fd event) : event_(std::move(event)) {}

  /// Costs no system call unless the waiter sleeps.
  void raise();
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

  /// Waits for `events` on `fd`. done (also for errors and hang-ups of fd) leaves a raise() in place;
  /// interrupted consumes it; broken means that poll itself failed.
  io wait(int fd, short events, deadline until);

 private:
  void drain();

  unique_fd event_;
  // Dekker's pair: raise() sets raised_ and then looks at sleeping_, wait() sets sleeping_ and then looks at
  // raised_. Both are sequentially consistent, so at least one of them sees the other.
  std::atomic<bool> raised_{false};
  std::atomic<bool> sleeping_{false};
};

}  // namespace outboard::transport
