#include "frontend/outbox.hh"

#include <sys/prctl.h>

#include <system_error>
#include <utility>

#include "base/blocked_signals.hh"

namespace outboard::frontend {
namespace {

/// Fewer writes than this one after the other are no burst: waking a thread costs as much as a write.
constexpr unsigned burst = 4;

/// How often the thread looks in vain before it sleeps until it is wanted: a few milliseconds, so that a
/// program that launches all the time does not wake it each time.
constexpr int idle_looks = 40;

}  // namespace

outbox::~outbox() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void outbox::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wanted_.notify_one();
}

/// Is the thread there and awake?
bool outbox::has_help() {
  if (given_up_) return false;
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  asked_ = true;  // it must not fall asleep over what is gathered now
  if (awake_) return true;
  if (!thread_.joinable()) {
    const blocked_signals blocked;
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      given_up_ = true;
      return false;
    }
  }
  awake_ = true;
  wanted_.notify_one();
  return true;
}

bool outbox::take(std::initializer_list<std::span<const std::byte>> frame, pace how, clock::time_point now) {
  std::size_t size = 0;
  for (const auto& part : frame) size += part.size();
  if (size > small || how == pace::awaited) return false;
  if (now - std::exchange(last_work_, now) >= quiet) answered();
  if (how == pace::work && in_a_row_.load(std::memory_order_relaxed) < burst) {
    in_a_row_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (gathered_.empty()) {
    if (how != pace::followed && !has_help()) return false;
    oldest_ = now;
  }
  for (const auto& part : frame) gathered_.insert(gathered_.end(), part.begin(), part.end());
  return true;
}

void outbox::work() {
  // The system makes sleeps longer by as much as `nap` otherwise.
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::unique_lock lock(mutex_);
  for (int in_vain = 0; !stopped_;) {
    if (std::exchange(asked_, false)) in_vain = 0;
    if (in_vain >= idle_looks) {
      awake_ = false;
      wanted_.wait(lock, [this] { return awake_ || stopped_; });
      continue;
    }
    lock.unlock();
    std::this_thread::sleep_for(nap);
    in_vain = look_() ? 0 : in_vain + 1;
    lock.lock();
  }
}

}  // namespace outboard::frontend
