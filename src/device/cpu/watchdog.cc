#include "device/cpu/watchdog.hh"

#include "base/blocked_signals.hh"

namespace outboard::device::cpu {

using clock = std::chrono::steady_clock;

watchdog::watchdog(std::chrono::milliseconds limit) : limit_(limit) {
  if (limit_.count() <= 0) return;
  const blocked_signals blocked;
  thread_ = std::thread([this] { work(); });
}

watchdog::~watchdog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void watchdog::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [end, w] : running_) w->token_.cancel();
}

watchdog::watch::watch(watchdog& w) : watchdog_(w) {
  std::lock_guard lock(w.mutex_);
  if (w.closed_) token_.cancel();
  const auto end = w.limit_.count() > 0 ? clock::now() + w.limit_ : clock::time_point::max();
  place_ = w.running_.emplace(end, this);
  if (w.limit_.count() > 0 && place_ == w.running_.begin()) w.changed_.notify_one();
}

watchdog::watch::~watch() {
  std::lock_guard lock(watchdog_.mutex_);
  watchdog_.running_.erase(place_);
}

void watchdog::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = clock::now();
    auto next = running_.begin();
    while (next != running_.end() && next->first <= now) (next++)->second->token_.cancel();
    // Cancelled kernels stay listed until they end, so the thread wakes for the first that is not due yet.
    if (next == running_.end()) {
      changed_.wait(lock);
    } else {
      const auto due = next->first;  // a copy: the kernel may end, and its entry go, during the wait
      changed_.wait_until(lock, due);
    }
  }
}

}  // namespace outboard::device::cpu
