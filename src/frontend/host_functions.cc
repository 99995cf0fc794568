#include "frontend/host_functions.hh"

#include <signal.h>
#include <unistd.h>

#include "frontend/lane.hh"

namespace outboard::frontend {

std::uint64_t host_functions::add(session& from, function run) {
  const std::lock_guard lock(mutex_);
  if (!started_) {
    started_ = true;
    gone_.store(false, std::memory_order_relaxed);
    // Signals are the program's business (design section 5.4).
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this, &from] { work(from); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  functions_[++last_] = std::make_shared<const function>(std::move(run));
  return last_;
}

void host_functions::surround(std::function<void()> before, std::function<void()> after) {
  const std::lock_guard lock(mutex_);
  before_ = std::move(before);
  after_ = std::move(after);
}

void host_functions::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  functions_.erase(id);
}

void host_functions::run(const callback_order& order) {
  std::shared_ptr<const function> what;
  {
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(order.errand.id);
    if (found != functions_.end()) what = found->second;
  }
  if (!what) return;  // the server errs: nothing of ours runs by a number that we did not give out
  if (before_) before_();
  lane& own = this_lane();
  own.in_callback = true;
  in_program_.store(true, std::memory_order_release);
  (*what)(order.errand.status);
  in_program_.store(false, std::memory_order_release);
  own.in_callback = false;
  if (after_) after_();
}

void host_functions::work(session& from) {
  while (const auto order = from.next_callback()) {
    if (order->errand.what == marshal::errand::run) run(*order);
    const bool once = order->errand.what == marshal::errand::run && order->errand.last;
    if (once || order->errand.what == marshal::errand::forget) forget(order->errand.id);
    from.answer_callback(order->number);
  }
  const std::lock_guard lock(mutex_);
  started_ = false;  // a session that goes on elsewhere gets a thread of its own
  gone_.store(true, std::memory_order_release);
}

void host_functions::end() {
  // The library may be unloaded after this: the thread should not be in it then. A function of the program
  // that does not return, or that ended the process itself, is not waited for.
  for (int i = 0; i < 200 && !gone_.load(std::memory_order_acquire); ++i) {
    if (in_program_.load(std::memory_order_acquire)) return;
    ::usleep(500);
  }
}

void host_functions::forked() { gone_.store(true, std::memory_order_relaxed); }

}  // namespace outboard::frontend
