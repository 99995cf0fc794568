#include "device/cpu/busy.hh"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/blocked_signals.hh"

namespace outboard::device::cpu {
namespace {

/// As often as boards sample theirs (between 1/6 s and 1 s, says NVML's reference).
constexpr std::chrono::milliseconds period{250};

}  // namespace

double cpu_seconds(pid_t process) {
  // Everybody may read a process's clock. Its files in /proc are closed to who is confined.
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

busy_meter::busy_meter(unsigned cores, activity_source workers)
    : cores_(std::max(cores, 1u)), workers_(std::move(workers)) {
  const blocked_signals blocked;
  thread_ = std::thread([this] { run(); });
}

busy_meter::~busy_meter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

unsigned busy_meter::percent() const {
  const std::lock_guard lock(mutex_);
  return percent_;
}

void busy_meter::sample() {
  const auto now = std::chrono::steady_clock::now();
  const double passed = std::chrono::duration<double>(now - when_).count();
  std::map<pid_t, double> seconds;
  double used = 0;
  for (const worker_activity& w : workers_()) {
    const double own = cpu_seconds(w.worker);
    const auto before = seconds_.find(w.worker);
    if (before != seconds_.end()) used += std::max(own - before->second, 0.0);
    seconds.emplace(w.worker, own);
  }
  seconds_ = std::move(seconds);
  when_ = now;
  const std::lock_guard lock(mutex_);
  percent_ = static_cast<unsigned>(std::clamp(100.0 * used / (passed * cores_) + 0.5, 0.0, 100.0));
}

void busy_meter::run() {
  when_ = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return ending_; })) {
    lock.unlock();
    sample();
    lock.lock();
  }
}

}  // namespace outboard::device::cpu
