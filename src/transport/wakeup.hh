// wakeup: lets any thread end another's poll(), once, even if the poll has not begun. Owned by a connection
// or listener; raise() from any thread, wait() by one thread at a time.
#pragma once

#include <poll.h>

#include <atomic>
#include <span>

#include "base/fd.hh"
#include "base/result.hh"
#include "transport/transport.hh"

namespace outboard::transport {

/// poll() with an absolute deadline that goes on after signals. The count of ready descriptors, 0 when the
/// time is up, -1 with errno set.
int poll_until(std::span<pollfd> fds, deadline until);

/// The same descriptor by a high number, where a program that counts on low ones, closes what it does not
/// know or runs out of them meets it less; by its own where there is none.
unique_fd out_of_the_way(unique_fd fd);

class wakeup {
 public:
  /// The descriptor that wakes a sleeper; made first, so that running out of them is an error of the maker.
  static result<unique_fd> make_event();
  explicit wakeup(unique_fd event) : event_(std::move(event)) {}

  /// Costs no system call unless the waiter sleeps.
  void raise();
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

  /// Waits for `events` on `fd`. done (also for errors and hang-ups of fd) leaves a raise() in place;
  /// interrupted takes it away; broken means that poll itself failed.
  io wait(int fd, short events, deadline until);

 private:
  void drain();

  unique_fd event_;
  // Dekker's pair: raise() sets raised_ and then looks at sleeping_, wait() sets sleeping_ and then looks at
  // raised_; both sequentially consistent, so at least one of them sees the other.
  std::atomic<bool> raised_{false};
  std::atomic<bool> sleeping_{false};
};

}  // namespace outboard::transport
