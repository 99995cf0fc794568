// The window: the range of addresses from which this session's device memory comes, one slot for each device.
// The front-end assigns the addresses, so an address means the same after the session was rebuilt elsewhere.
// It claims the range in its own process, so device memory can never collide with the program's memory. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace outboard::frontend {

/// The unit in which device memory is mapped; the driver's VMM granularity on every GPU seen.
inline constexpr std::uint64_t window_granule = 2ull << 20;

/// A range of host addresses claimed without memory (PROT_NONE), and released on destruction.
class claimed_range {
 public:
  claimed_range() = default;
  /// Returns nothing if any part is in use.
  static std::optional<claimed_range> claim(std::uint64_t base, std::uint64_t size);
  claimed_range(claimed_range&& other) noexcept;
  claimed_range& operator=(claimed_range&& other) noexcept;
  ~claimed_range();
  std::uint64_t base() const { return base_; }
  void keep() { base_ = size_ = 0; }  ///< for the life of the process

 private:
  std::uint64_t base_ = 0, size_ = 0;
};

/// Maps the file's pages from `offset` on over a range that this process has claimed: each end sees at once
/// what the other writes. A child of fork() does not have these pages.
bool map_shared(std::uint64_t address, std::uint64_t size, int file, std::uint64_t offset);

/// Addresses that the device chose (variables of modules, pools), claimed in this process page by page, so
/// that the direction of a copy is never guessed wrong. They stay claimed: a claim costs nothing.
class foreign_claims {
 public:
  /// Returns false if memory of the program is there.
  bool claim(std::uint64_t address, std::uint64_t size);
  /// Claims the range and makes it readable and writable, zero until written. Neighbours share the pages that
  /// it touches.
  bool open(std::uint64_t address, std::uint64_t size);
  /// Like open(), but with pages that the server shares: the file has each byte at the offset of its address.
  /// Whole pages.
  bool share(std::uint64_t address, std::uint64_t size, int file);
  /// The range stays claimed, but is empty and inaccessible again.
  void close(std::uint64_t address, std::uint64_t size);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> claimed_;  // begin -> end, whole pages, never adjacent
};

/// Free addresses of one slot, first fit in granules.
class slot_addresses {
 public:
  slot_addresses(std::uint64_t base, std::uint64_t size) { free_[base] = size; }
  /// Returns 0 if no hole is large enough. The caller rounds `size` up to the granule.
  std::uint64_t take(std::uint64_t size, std::uint64_t alignment = window_granule);
  /// Returns false if not all of it is free.
  bool take_at(std::uint64_t base, std::uint64_t size);
  void give_back(std::uint64_t base, std::uint64_t size);

 private:
  void cut(std::map<std::uint64_t, std::uint64_t>::iterator hole, std::uint64_t base, std::uint64_t size);

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // base -> size, never adjacent
};

/// Bases, in the order in which they are tried; docs/design.md, section 7, explains those for sanitizers and
/// 39-bit clients.
std::vector<std::uint64_t> window_base_candidates();

}  // namespace outboard::frontend
