// Addresses whose memory has gone and that must not come to mean anything else. A graph's node, or a copy
// that a peer asks for, may still hold such an address: it then reaches inaccessible pages, and not the stack
// or the heap that the kernel would have placed there since. What is retired is used again only for memory of
// the same owner's kind. It costs addresses, but no memory. Not thread-safe: its owner locks.
#pragma once

#include <cstdint>
#include <optional>

#include "base/range_allocator.hh"

namespace outboard {

class retired_addresses {
 public:
  retired_addresses() = default;
  ~retired_addresses();  ///< gives all of them back to the kernel
  retired_addresses(const retired_addresses&) = delete;
  retired_addresses& operator=(const retired_addresses&) = delete;

  /// Whole pages that the caller has mapped: their memory is given up, and they belong to this object.
  void retire(std::uint64_t begin, std::uint64_t size);

  /// The caller is about to map something at exactly this place, without MAP_FIXED: whatever is retired there
  /// goes back to the kernel.
  void make_room(std::uint64_t begin, std::uint64_t size);

  /// Retired addresses, which the caller now owns and maps over with MAP_FIXED; nothing: no range is large
  /// enough. Precondition: the alignment is a power of two.
  std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);

 private:
  range_allocator ranges_;
};

}  // namespace outboard
