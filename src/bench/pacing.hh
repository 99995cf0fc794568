// Time, its median, and one kind of call over and over. Shared with the programs of bench/, some of which are
// C++17. Pure but for the clock; any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace outboard::bench {

inline double microseconds() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

/// The upper one of an even number. Precondition: there is one.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// What one call takes, in microseconds; a tenth as many come before and do not count.
template <typename Call>
double pace_of(std::size_t count, Call call) {
  for (std::size_t i = 0; i < count / 10 + 1; ++i) call();
  std::vector<double> took;
  for (std::size_t i = 0; i < count; ++i) {
    const double began = microseconds();
    call();
    took.push_back(microseconds() - began);
  }
  return median(took);
}

/// The same of as many calls as fit into so many seconds, three at least; a tenth of the time goes before.
/// The first call that gives false ends it, with nothing.
template <typename Call>
std::optional<double> pace_within(double seconds, Call call) {
  const double start = microseconds(), limit = start + seconds * 1e6;
  do {
    if (!call()) return std::nullopt;
  } while (microseconds() < start + seconds * 1e5);
  std::vector<double> took;
  double began = microseconds();
  while (took.size() < 3 || began < limit) {
    if (!call()) return std::nullopt;
    const double ended = microseconds();
    took.push_back(ended - began);
    began = ended;
  }
  return median(std::move(took));
}

}  // namespace outboard::bench
