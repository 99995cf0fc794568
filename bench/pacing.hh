// Measures time, medians, and one kind of call repeatedly.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

inline double microseconds() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The microseconds that one call takes; a tenth as many calls come first and do not count.
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
