// Makes chains by chance: proposes operations and keeps those that the model takes.
#pragma once

#include <random>

#include "chain.hh"

namespace chains {

struct limits {
  int devices = 1;
  std::vector<verb> without;  ///< kinds of operations that are not made
  bool gpu = false;           ///< sizes to 16 MiB, and kernels over all of them; else mostly below 64 KiB
};

/// Its share of the numbers is that of the seed: the same seed makes the same chain.
chain make_chain(std::uint64_t seed, const limits& within);

}  // namespace chains
