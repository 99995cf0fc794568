// Small allocations cut out of granules of the window at the driver's alignment. The caller maps and unmaps
// granules; this class only keeps the books. Freed space may be reused at once, because the caller has waited
// for the device before. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace outboard::frontend {

/// cuMemAlloc returns addresses aligned to at least 256 bytes; drivers give 512.
inline constexpr std::uint64_t small_alignment = 512;
/// Above this a block gets granules of its own.
inline constexpr std::uint64_t small_limit = 1ull << 20;

class slab_allocator {
 public:
  /// An address for `size` bytes in a known granule, or 0: add_granule() first.
  std::uint64_t take(std::uint64_t size);
  void add_granule(std::uint64_t base, std::uint64_t size);
  /// Gives the space back. The base of a granule that is empty now and no longer needed, taken out of the
  /// books, or 0.
  std::uint64_t give_back(std::uint64_t address, std::uint64_t size);
  /// Forgets everything (the context died) and returns the granules' bases.
  std::vector<std::uint64_t> clear();

 private:
  static std::uint64_t rounded(std::uint64_t size) {
    return (size + small_alignment - 1) / small_alignment * small_alignment;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;      // base -> size, merged within a granule
  std::map<std::uint64_t, std::uint64_t> granules_;  // base -> size
  std::map<std::uint64_t, std::uint64_t> used_;      // granule base -> bytes handed out
};

}  // namespace outboard::frontend
