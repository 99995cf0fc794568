// The daemon's one loop: descriptors and timers, each with a function. Owned by the daemon; one thread. A
// function may add, change and forget watches and timers, also its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

class event_loop {
 public:
  using clock = std::chrono::steady_clock;
  using id = std::uint64_t;  ///< of a watch or a timer; 0 is none, never used twice
  using on_events = std::function<void(std::uint32_t)>;
  using on_time = std::function<void()>;

  static result<event_loop> make();

  /// `fd` stays the caller's and must outlive the watch. Events as in epoll_ctl(2). An error with
  /// action::retry: the kernel watches as many descriptors of this user as it may (max_user_watches), or has
  /// no memory.
  result<id> watch(int fd, std::uint32_t events, on_events call);
  void change(id watch, std::uint32_t events);
  /// Of a watch or a timer; 0 and what is gone already are fine.
  void forget(id which);

  id at(clock::time_point when, on_time call);
  id after(clock::duration delay, on_time call) { return at(clock::now() + delay, std::move(call)); }

  /// Waits for the next events or timer and calls their functions.
  void run_once();

 private:
  struct watched {
    int fd;
    // Shared, because a function that forgets its own watch is still running.
    std::shared_ptr<on_events> call;
  };

  explicit event_loop(unique_fd epoll) : epoll_(std::move(epoll)) {}
  int milliseconds_to_next() const;
  void call_due_timers();

  unique_fd epoll_;
  id next_id_ = 1;
  std::map<id, watched> watches_;
  std::map<std::pair<clock::time_point, id>, on_time> timers_;
  std::map<id, clock::time_point> timer_times_;
};

}  // namespace outboard::backend
