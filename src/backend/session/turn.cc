#include "backend/session/turn.hh"

#include <utility>

namespace outboard::backend {

turn::awaited turn::await(contender& own) {
  std::unique_lock lock(mutex_);
  own.idle = true;
  idle_changed_.notify_all();
  own.wake.wait(lock, [&] { return holder_ == &own || own.called || ended_; });
  if (std::exchange(own.called, false) && holder_ != &own && !ended_) return awaited::called;
  own.idle = false;
  return ended_ ? awaited::end : awaited::turn;
}

void turn::call(contender& who) {
  const std::lock_guard lock(mutex_);
  who.called = true;
  who.wake.notify_one();
}

bool turn::await_free(contender& own, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (!own.wake.wait_until(lock, until,
                           [&] { return holder_ == nullptr || holder_ == &own || ended_ || nudged_; }))
    return false;
  nudged_ = false;
  if (ended_ || (holder_ != nullptr && holder_ != &own)) return false;
  holder_ = &own;
  return true;
}

void turn::nudge(contender& standby) {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  standby.wake.notify_one();
}

void turn::pass(contender& to) {
  const std::lock_guard lock(mutex_);
  holder_ = &to;
  if (wanted_ == &to) wanted_ = nullptr;
  to.wake.notify_one();
}

void turn::release(contender& standby) {
  const std::lock_guard lock(mutex_);
  release_locked(standby);
}

void turn::step_aside(contender& own, contender& standby) {
  const std::lock_guard lock(mutex_);
  own.idle = true;
  idle_changed_.notify_all();
  release_locked(standby);
}

void turn::release_locked(contender& standby) {
  if (wanted_) {
    contender* const next = std::exchange(wanted_, nullptr);
    holder_ = next;
    next->wake.notify_one();
    return;
  }
  holder_ = nullptr;
  standby.wake.notify_one();
}

void turn::reclaim(contender& own, contender& standby, bool& interrupt) {
  const std::lock_guard lock(mutex_);
  interrupt = false;
  if (holder_ == nullptr) {
    holder_ = &own;
  } else if (holder_ == &standby && !wanted_) {
    wanted_ = &own;
    interrupt = true;
  }
}

contender* turn::wanted_by() {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

bool turn::await_idle(contender& other) {
  std::unique_lock lock(mutex_);
  idle_changed_.wait(lock, [&] { return other.idle || ended_; });
  return !ended_;
}

bool turn::is_idle(const contender& other) const {
  const std::lock_guard lock(mutex_);
  return other.idle;
}

void turn::end() {
  const std::lock_guard lock(mutex_);
  ended_.store(true, std::memory_order_release);
  if (contender* const holder = holder_) holder->wake.notify_all();
  idle_changed_.notify_all();
}

void turn::wake(contender& who) {
  const std::lock_guard lock(mutex_);
  who.wake.notify_all();
}

bool turn::held_by(const contender& who) const {
  const std::lock_guard lock(mutex_);
  return holder_ == &who;
}

}  // namespace outboard::backend
