// What the ways of copying much have in common: how a copy is cut, and how its threads wait for each other.
// Values; a `patience` belongs to one thread.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "transport/spin.hh"

namespace outboard::frontend::cuda {

/// What several threads copy by needs memory, connections, threads: a process that copies little does
/// without.
inline constexpr std::uint64_t worth_preparing = 8u << 20;

/// The beginning of a copy to the host goes the ordinary way: it waits for the work before it without a
/// thread that polls, and brings what waits bring (errors, output, what kernels wrote).
inline constexpr std::uint64_t copy_head = 64u << 10;

/// Pieces small enough that several threads have some, large enough that what a piece costs besides is
/// little.
inline std::uint64_t piece_of(std::uint64_t size, std::uint64_t most) {
  constexpr std::uint64_t page = 4096;
  return std::clamp((size / 8 + page - 1) / page * page, std::uint64_t{64} << 10, most);
}

/// Waiting for the device or another thread: first at once, then with pauses, because the stream may be busy
/// for long.
class patience {
 public:
  void pause() {
    ++rounds_;
    static const bool spins = transport::default_spin().count() > 0;
    if (rounds_ < 2000 && spins) return transport::spin_pause();
    if (rounds_ < 4000) return void(::sched_yield());
    const timespec nap{0, 50'000};
    ::nanosleep(&nap, nullptr);
  }
  void restart() { rounds_ = 0; }
  /// Now and then it is time to ask whether what is waited for will ever come.
  bool doubtful() const { return rounds_ > 4000 && rounds_ % 256 == 0; }

 private:
  unsigned rounds_ = 0;
};

}  // namespace outboard::frontend::cuda
