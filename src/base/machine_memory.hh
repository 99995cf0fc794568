// The memory of this machine. Any thread.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "base/pages.hh"

namespace outboard {

/// The limit for locked or kept memory: the whole machine lacks it.
inline std::uint64_t quarter_of_memory() {
  static const auto quarter = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_size() / 4;
  return quarter;
}

}  // namespace outboard
