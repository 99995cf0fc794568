// What tests of changes of memory have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marshal/cuda/memory_changes.hh"

namespace outboard::marshal {

/// Where the block of those tests lies.
inline constexpr std::uint64_t base = 0x2080'0000'1000;

/// The lines of it that a list of changes names, in its order.
inline std::vector<std::uint64_t> lines_in_order(std::span<const std::byte> changes) {
  std::vector<std::uint64_t> all;
  for_each_run(changes, [&](std::uint64_t address, std::uint32_t lines) {
    for (std::uint32_t i = 0; i < lines; ++i) all.push_back((address - base) / change_line + i);
  });
  return all;
}

}  // namespace outboard::marshal
