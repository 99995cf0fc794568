// Do two ranges of memory share a byte?
#pragma once

#include <cstddef>
#include <span>

namespace outboard {

inline bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace outboard
