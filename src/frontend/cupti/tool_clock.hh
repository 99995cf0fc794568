// The clock of a program's profiler in relation to ours: CUPTI's times are those of the wall clock, or of a
// function that the program has given. The two are compared again and again, because either may be slewed;
// between two comparisons the clock is assumed to have moved evenly. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>

#include "base/steady.hh"

namespace outboard::frontend::cupti {

class tool_clock {
 public:
  using source = std::uint64_t (*)();

  /// Uses the program's own clock; nullptr: the wall clock. Earlier comparisons are forgotten.
  void use(source own) {
    own_ = own;
    looks_.clear();
  }

  std::uint64_t now() const {
    if (own_) return own_();
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count());
  }

  /// The narrowest of a few: a thread may lose its processor between one clock and the other.
  void look() {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), at = 0, shown = 0;
    for (int i = 0; i < most_tries && least > narrow; ++i) {
      const std::int64_t before = steady_nanoseconds();
      const auto tool = static_cast<std::int64_t>(now());
      const std::int64_t took = steady_nanoseconds() - before;
      if (took < least) least = took, at = before + took / 2, shown = tool;
    }
    look(at, shown);
  }
  /// For tests: both at one moment.
  void look(std::int64_t steady, std::int64_t tool) {
    looks_.push_back({steady, tool - steady});
    if (looks_.size() > most_looks) looks_.pop_front();
  }

  /// A moment of std::chrono::steady_clock, nanoseconds. There has been a look.
  std::uint64_t of(std::int64_t steady) const {
    const auto later = std::ranges::upper_bound(looks_, steady, {}, &seen::at);
    if (later == looks_.begin()) return static_cast<std::uint64_t>(steady + looks_.front().offset);
    const seen& before = *(later - 1);
    if (later == looks_.end()) return static_cast<std::uint64_t>(steady + before.offset);
    const double part = static_cast<double>(steady - before.at) / static_cast<double>(later->at - before.at);
    const double moved = static_cast<double>(later->offset - before.offset) * part;
    return static_cast<std::uint64_t>(steady + before.offset + static_cast<std::int64_t>(moved));
  }

 private:
  static constexpr int most_tries = 5;
  static constexpr std::int64_t narrow = 1000;  // nanoseconds
  /// A minute of them: records are not older.
  static constexpr std::size_t most_looks = 600;
  struct seen {
    std::int64_t at, offset;
  };

  source own_ = nullptr;
  std::deque<seen> looks_;
};

}  // namespace outboard::frontend::cupti
