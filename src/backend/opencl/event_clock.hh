// A device's clock seen from this process: OpenCL gives the times of a command on a clock of the device's
// own. A command is queued while the call that gives it is under way, so the time that the device says it was
// queued at lies between two of ours; many commands say it to a few microseconds. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace outboard::backend::opencl {

class event_clock {
 public:
  /// The device says `queued` of a command that was given between `before` and `after`; all in nanoseconds,
  /// the last two of the steady clock.
  void note(std::uint64_t queued, std::uint64_t before, std::uint64_t after) {
    const auto at = static_cast<std::int64_t>(before);
    range seen{at - static_cast<std::int64_t>(queued),
               static_cast<std::int64_t>(after) - static_cast<std::int64_t>(queued)};
    if (at_ != 0) {
      // What was known before holds as far as the clocks can have moved against each other since.
      const std::int64_t drift = std::max<std::int64_t>(at - at_, 0) / one_in;
      const range both{std::max(seen.least, known_.least - drift), std::min(seen.most, known_.most + drift)};
      if (both.least <= both.most) seen = both;
    }
    known_ = seen;
    at_ = at;
  }

  /// On our clock. Before anything was noted both count as one.
  std::uint64_t ours(std::uint64_t theirs) const {
    const auto between = known_.least + (known_.most - known_.least) / 2;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(theirs) + between);
  }

 private:
  /// 100 ppm: more than two clocks of a machine drift apart.
  static constexpr std::int64_t one_in = 10'000;
  struct range {
    std::int64_t least = 0, most = 0;  ///< ours - theirs
  };

  range known_;
  std::int64_t at_ = 0;  // of the last note; 0: there was none
};

}  // namespace outboard::backend::opencl
