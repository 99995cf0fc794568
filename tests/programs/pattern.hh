// Shared by fill_and_hang and find_pattern: the pattern, and how to take all memory.
#pragma once

#include <algorithm>

#include "common.hh"

constexpr std::uint64_t pattern = 0x6472616f6274754f;  // "Outboard"; unlikely to be there by chance

struct piece {
  std::uint64_t* words;
  size_t count;
};

/// Allocates pieces, large ones first, until not even a small one is left (or up to a limit in megabytes).
inline std::vector<piece> take_all(long limit_megabytes) {
  std::vector<piece> taken;
  size_t left = limit_megabytes > 0 ? size_t(limit_megabytes) << 20 : ~size_t(0);
  for (size_t bytes = size_t(1) << 33; bytes >= size_t(1) << 20; bytes /= 2) {
    void* got;
    while (bytes <= left && cudaMalloc(&got, bytes) == cudaSuccess) {
      taken.push_back({static_cast<std::uint64_t*>(got), bytes / 8});
      left -= bytes;
    }
  }
  cudaGetLastError();  // clears the refusal that ended the search
  return taken;
}

inline size_t megabytes(const std::vector<piece>& taken) {
  size_t words = 0;
  for (auto& each : taken) words += each.count;
  return words >> 17;
}
