#include "transport/spin.hh"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "base/cores.hh"

namespace outboard::transport {

namespace {

/// Asked once, because spins begin often.
int all_cores() {
  static const int cores = usable_cores();
  return cores;
}

// Process-wide on purpose, as cores are. Relaxed, because it only counts.
std::atomic<int> spinners{0};

}  // namespace

std::chrono::microseconds default_spin() { return std::chrono::microseconds(all_cores() > 2 ? 50 : 0); }

spin::spin(std::chrono::microseconds budget, deadline until)
    : yields_from_(deadline::min()), end_(deadline::min()) {
  if (budget.count() <= 0) return;
  // Half of the cores but at least one: a small machine on which spinning was asked for gets it.
  int most = std::max(1, all_cores() / 2);
  if (spinners.fetch_add(1, std::memory_order_relaxed) >= most) {
    spinners.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  counted_ = true;
  const auto begun = clock::now();
  yields_from_ = begun + std::chrono::microseconds(200);
  end_ = std::min(until, begun + budget);
}

spin::~spin() {
  if (counted_) spinners.fetch_sub(1, std::memory_order_relaxed);
}

bool spin::again() {
  // Reading the clock costs as much as the look for which we spin. (The clock was read when the spin began.)
  constexpr unsigned pauses_between_clocks = 8;
  if (!counted_) return false;
  if (++pauses_ % pauses_between_clocks == 0) {
    const auto now = clock::now();
    if (now >= end_) return false;
    yields_ = now >= yields_from_;
  }
  yields_ ? void(::sched_yield()) : spin_pause();
  return true;
}

}  // namespace outboard::transport
