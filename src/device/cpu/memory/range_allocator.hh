// range_allocator: which parts of a number range (addresses, file offsets) are free; best fit, O(log n),
// neighbours join when freed. Not thread-safe: its owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace outboard::device::cpu {

class range_allocator {
 public:
  /// Gives [begin, begin + size) to the allocator, as freeing it does. Must not overlap what is free.
  void add(std::uint64_t begin, std::uint64_t size);

  /// The lowest aligned start in the smallest free range that fits. Precondition: alignment is a power of
  /// two.
  std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);

  /// Takes exactly this range; false when a part of it is not free.
  bool take_at(std::uint64_t begin, std::uint64_t size);

  /// The free range that contains `at`: (begin, size).
  std::optional<std::pair<std::uint64_t, std::uint64_t>> free_around(std::uint64_t at) const;

  std::uint64_t free_bytes() const { return free_bytes_; }

 private:
  using by_begin = std::map<std::uint64_t, std::uint64_t>;
  void insert(std::uint64_t begin, std::uint64_t size);
  void erase(by_begin::iterator at);

  by_begin ranges_;                                            // begin -> size
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // (size, begin)
  std::uint64_t free_bytes_ = 0;
};

}  // namespace outboard::device::cpu
