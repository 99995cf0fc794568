// CHECK: catches our own bugs, also in release builds. Never used on data of a peer or of the program (those
// errors are results). Any thread; does not return when the condition is false.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace outboard {

[[noreturn]] inline void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "outboard: CHECK failed: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace outboard

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::outboard::check_failed(#condition, __FILE__, __LINE__))
