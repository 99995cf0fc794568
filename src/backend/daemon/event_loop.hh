// The daemon's one loop: it watches descriptors and timers, each with a function to call. A function may add,
// change and forget watches and timers, also its own. Owned by the daemon; one thread.
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
  using id = std::uint64_t;  ///< of a watch or a timer; 0 means none, and no number is used twice
  using on_events = std::function<void(std::uint32_t)>;
  using on_time = std::function<void()>;

  static result<event_loop> make();

  /// `fd` stays the caller's and must outlive the watch. Events as in epoll_ctl(2). An error with
  /// action::retry: the kernel has no room for another watch (a limit for each user, which guests of other
  /// programs use up too).
  result<id> watch(int fd, std::uint32_t events, on_events call);
  void change(id watch, std::uint32_t events);
  /// Forgets a watch or a timer; may be 0 or one that is already gone.
  void forget(id which);

  id at(clock::time_point when, on_time call);
  id after(clock::duration delay, on_time call) { return at(clock::now() + delay, std::move(call)); }

  /// Waits for the next events or timer and calls their functions.
  void run_once();

 private:
  struct watched {
    int fd;
    // Shared, because a function that forgets its own watch is still being executed.
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
