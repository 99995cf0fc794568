// Time, its median, and one kind of call over and over.
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
