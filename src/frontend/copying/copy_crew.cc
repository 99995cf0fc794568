#include "frontend/copying/copy_crew.hh"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/blocked_signals.hh"
#include "base/cores.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds idle_for{2};

/// A connection keeps a thread busy, and as many of the server's: more than half of the cores would stand in
/// each other's way.
int helpers() {
  const int cores = usable_cores();
  return std::clamp(std::max(cores / 2, std::min(cores - 1, copy_crew::copying)), 0, 7);
}

}  // namespace

copy_crew& copy_crew::instance() {
  static copy_crew& one = *new copy_crew(helpers());
  return one;
}

copy_crew::shift::shift(copy_crew& crew, const std::function<void()>& help, int wanted) : crew_(crew) {
  wanted = std::min(wanted, crew_.most_);
  if (wanted <= 0) return;
  const std::lock_guard lock(crew_.mutex_);
  if (crew_.help_) return;
  ours_ = true;
  crew_.help_ = &help;
  ++crew_.number_;
  crew_.places_ = wanted;
  crew_.start_missing();
  crew_.begun_.notify_all();
}

copy_crew::shift::~shift() {
  if (!ours_) return;
  std::unique_lock lock(crew_.mutex_);
  crew_.help_ = nullptr;  // who wakes only now has missed it
  crew_.ended_.wait(lock, [&] { return crew_.busy_ == 0; });
}

void copy_crew::start_missing() {
  const blocked_signals blocked;
  for (; threads_ < places_; ++threads_) {
    try {
      std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
      break;  // the process may have no more threads: then fewer help
    }
  }
}

void copy_crew::work() {
  std::unique_lock lock(mutex_);
  for (unsigned long seen = 0;;) {
    // By the system's clock: the wait by the steady one asks for a C library newer than we promise (2.34).
    const bool called = begun_.wait_until(lock, std::chrono::system_clock::now() + idle_for,
                                          [&] { return help_ && number_ != seen && places_ > 0; });
    if (!called) break;
    seen = number_;
    --places_;
    ++busy_;
    const auto& help = *help_;
    lock.unlock();
    help();
    lock.lock();
    if (--busy_ == 0) ended_.notify_all();
  }
  --threads_;
}

}  // namespace outboard::frontend
