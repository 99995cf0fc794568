// Values of the width of size_t (or intptr_t): 64 bits on the wire, and this end's width here. Where both are
// the same these functions do nothing. Pure functions.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace outboard::marshal::opencl {

/// Returns a size in this end's width, or the largest number if it does not fit.
template <std::unsigned_integral Size = std::size_t>
constexpr Size size_here(std::uint64_t size) {
  return static_cast<Size>(std::min<std::uint64_t>(size, std::numeric_limits<Size>::max()));
}

/// Converts sizes from the wire to this end's width for the program; bytes that are not a whole size are
/// dropped.
template <std::unsigned_integral Size = std::size_t>
std::vector<std::uint8_t> narrowed(std::vector<std::uint8_t> sizes) {
  if constexpr (sizeof(Size) == sizeof(std::uint64_t)) return sizes;
  const std::size_t count = sizes.size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t wide = 0;
    std::memcpy(&wide, sizes.data() + i * sizeof wide, sizeof wide);
    const Size here = size_here<Size>(wide);
    std::memcpy(sizes.data() + i * sizeof here, &here, sizeof here);
  }
  sizes.resize(count * sizeof(Size));
  return sizes;
}

/// Converts in the other direction.
template <std::unsigned_integral Size = std::size_t>
std::vector<std::uint8_t> widened(std::span<const std::uint8_t> sizes) {
  std::vector<std::uint8_t> wide(sizes.size() / sizeof(Size) * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < sizes.size() / sizeof(Size); ++i) {
    Size here = 0;
    std::memcpy(&here, sizes.data() + i * sizeof here, sizeof here);
    const std::uint64_t all = here;
    std::memcpy(wide.data() + i * sizeof all, &all, sizeof all);
  }
  return wide;
}

}  // namespace outboard::marshal::opencl
