// How many cores this process may use. Any thread.
#pragma once

#include <sched.h>

#include <algorithm>

namespace outboard {

/// By the affinity of the calling thread; at least 1, also if the machine does not report it.
inline int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace outboard
