#include "transport/spin.hh"

#include <sched.h>

#include <algorithm>
#include <atomic>

namespace outboard::transport {

namespace {

int usable_cores() {
  static const int cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return cores;
}

// Process-wide on purpose: cores are. Relaxed, it only counts.
std::atomic<int> spinners{0};

}  // namespace

std::chrono::microseconds default_spin() { return std::chrono::microseconds(usable_cores() > 2 ? 50 : 0); }

spin::spin(std::chrono::microseconds budget, deadline until) : end_(deadline::min()) {
  if (budget.count() <= 0) return;
  // Half of the cores, at least one: who asked for spinning on a small machine gets it.
  int most = std::max(1, usable_cores() / 2);
  if (spinners.fetch_add(1, std::memory_order_relaxed) >= most) {
    spinners.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  counted_ = true;
  end_ = std::min(until, clock::now() + budget);
}

spin::~spin() {
  if (counted_) spinners.fetch_sub(1, std::memory_order_relaxed);
}

bool spin::again() {
  if (!counted_ || clock::now() >= end_) return false;
  spin_pause();
  return true;
}

}  // namespace outboard::transport
