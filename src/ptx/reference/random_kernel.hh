// Kernels made at random, for tests only: the same text from the same seed on every machine. They are free of
// races, of undefined shuffles and of NaNs whose bits the ISA leaves open, so every correct machine computes
// the same. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "ptx/reference/machine.hh"

namespace outboard::ptx::reference {

struct random_kernel {
  std::string text;  ///< entry k(in, out, sums)
  dimensions grid{1, 1, 1}, block{1, 1, 1};
  static constexpr std::uint32_t in_bytes = 256;    ///< of a thread, read only
  static constexpr std::uint32_t out_bytes = 512;   ///< of a thread; the last 64 are its own to update
  static constexpr std::uint32_t sums_bytes = 128;  ///< of the grid, zero before

  std::uint32_t threads() const { return grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]; }
};

random_kernel random_kernel_of(std::uint64_t seed);

}  // namespace outboard::ptx::reference
