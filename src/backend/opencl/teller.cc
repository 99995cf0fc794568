#include "backend/opencl/teller.hh"

#include <utility>

#include "base/blocked_signals.hh"

namespace outboard::backend::opencl {

void teller::pass_on(const news& what) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  waiting_.push_back(what);
  if (thread_.joinable()) return came_.notify_one();
  const blocked_signals blocked;
  thread_ = std::thread([this] { run(); });
}

void teller::end() {
  std::thread last;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    last = std::move(thread_);
  }
  came_.notify_all();
  if (last.joinable()) last.join();
}

void teller::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    came_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    const news first = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    tell_(first);
    lock.lock();
  }
}

}  // namespace outboard::backend::opencl
