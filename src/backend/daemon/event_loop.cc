#include "backend/daemon/event_loop.hh"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/errno_text.hh"
#include "base/log.hh"

namespace outboard::backend {

result<event_loop> event_loop::make() {
  unique_fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return failure("cannot make an epoll descriptor: " + errno_text(errno));
  return event_loop(std::move(epoll));
}

result<event_loop::id> event_loop::watch(int fd, std::uint32_t events, on_events call) {
  const id which = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = which;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return outboard::error{action::retry, "the server cannot watch another descriptor: " + errno_text(errno)};
  }
  watches_.emplace(which, watched{fd, std::make_shared<on_events>(std::move(call))});
  return which;
}

void event_loop::change(id watch, std::uint32_t events) {
  const auto at = watches_.find(watch);
  if (at == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  // Needs no memory, unlike EPOLL_CTL_ADD: it fails for a descriptor that is closed, which never has events.
  // Whoever closed it too soon has its own timer, or waits for ever; all others go on.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, at->second.fd, &event) == 0) return;
  log::error("the server no longer watches descriptor ", at->second.fd, ": ", errno_text(errno));
  watches_.erase(at);
}

void event_loop::forget(id which) {
  if (const auto at = watches_.find(which); at != watches_.end()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second.fd, nullptr);
    watches_.erase(at);
  } else if (const auto timer = timer_times_.find(which); timer != timer_times_.end()) {
    timers_.erase({timer->second, which});
    timer_times_.erase(timer);
  }
}

event_loop::id event_loop::at(clock::time_point when, on_time call) {
  const id which = next_id_++;
  timers_.emplace(std::pair(when, which), std::move(call));
  timer_times_.emplace(which, when);
  return which;
}

int event_loop::milliseconds_to_next() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
}

void event_loop::call_due_timers() {
  const clock::time_point now = clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.key().second);
    node.mapped()();
  }
}

void event_loop::run_once() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to_next());
  CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    // By value: the kernel's structure is packed, a reference into it would be misaligned.
    const epoll_event event = events[static_cast<std::size_t>(i)];
    const id which = event.data.u64;
    // An earlier function of this round may have forgotten it.
    const auto at = watches_.find(which);
    if (at == watches_.end()) continue;
    const std::shared_ptr<on_events> call = at->second.call;
    (*call)(event.events);
  }
  call_due_timers();
}

}  // namespace outboard::backend
