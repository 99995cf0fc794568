// The server's clock seen from here. Each question that the server answers with its times shows the
// difference of the two clocks, accurate to half of the time that it was on its way; of several asked
// together the quickest counts. Network time may slew each clock by 500 ppm, so one against the other by
// 1/1000. Between two comparisons the difference is assumed to change evenly, and never faster than that, so
// that what came later on one clock is later on the other. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "base/steady.hh"

namespace outboard::frontend {

class profile_clock {
 public:
  /// Ours, which all times of a profile are on: nanoseconds of the steady clock.
  static std::int64_t at(std::chrono::steady_clock::time_point time) { return steady_nanoseconds(time); }
  static std::int64_t now() { return steady_nanoseconds(); }

  /// What note() records from now on is a new look.
  void begin_look() {
    worst_ = error();
    if (now_.at != 0) before_ = now_;
    now_ = {};
  }

  /// It left at `asked`, its answer was here at `answered`; on the server's clock it came at `came`, and the
  /// answer left at `left`. Nanoseconds.
  void note(std::int64_t asked, std::int64_t came, std::int64_t left, std::int64_t answered) {
    // Both are one clock, of one machine: two that are not would not agree to the length of a question.
    if (asked <= came && left <= answered) {
      now_ = {came, 0, 0};
      return;
    }
    const std::int64_t took = (answered - asked) - (left - came);
    if (now_.at != 0 && took / 2 >= now_.error) return;
    now_ = {came, settled({came, asked + took / 2 - came, took / 2}), took / 2};
  }

  std::int64_t ours(std::uint64_t theirs) const {
    const auto at = static_cast<std::int64_t>(theirs);
    const look& last = now_.at != 0 ? now_ : before_;
    if (before_.at == 0 || last.at <= before_.at) return at + last.offset;
    const double part = static_cast<double>(at - before_.at) / static_cast<double>(last.at - before_.at);
    const double moved = static_cast<double>(last.offset - before_.offset);
    return at + before_.offset + static_cast<std::int64_t>(moved * std::clamp(part, 0.0, 1.0));
  }

  /// The largest that ours() has had between any two looks so far.
  std::int64_t error() const { return std::max({worst_, now_.error, before_.error}); }

 private:
  struct look {
    std::int64_t at = 0, offset = 0, error = 0;  ///< at: on their clock; 0: none
  };

  /// If two looks differ by more than that drift, the rest is their error, if it is no larger than that:
  /// following it at once would stretch everything between two looks that are close to each other. A larger
  /// difference is a step: a machine slept.
  std::int64_t settled(const look& seen) const {
    if (before_.at == 0) return seen.offset;
    const std::int64_t drift = std::max<std::int64_t>(seen.at - before_.at, 0) / 1000;
    const std::int64_t moved = seen.offset - before_.offset;
    if (std::llabs(moved) > drift + seen.error + before_.error) return seen.offset;
    return before_.offset + std::clamp(moved, -drift, drift);
  }

  look before_, now_;
  std::int64_t worst_ = 0;
};

}  // namespace outboard::frontend
