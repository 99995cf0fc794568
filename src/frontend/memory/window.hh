// The window: the range of addresses from which this session's device memory comes, one slot for each device.
// The front-end hands the addresses out, so an address means the same after the session was rebuilt
// elsewhere. It claims the range in its own process, so the window can never collide with the program's
// memory. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace outboard::frontend {

/// What device memory is mapped in; the driver's VMM granularity on every GPU seen.
inline constexpr std::uint64_t window_granule = 2ull << 20;

/// A range of host addresses claimed without memory (PROT_NONE), given back when it dies.
class claimed_range {
 public:
  claimed_range() = default;
  /// Nothing when any of it is in use.
  static std::optional<claimed_range> claim(std::uint64_t base, std::uint64_t size);
  claimed_range(claimed_range&& other) noexcept;
  claimed_range& operator=(claimed_range&& other) noexcept;
  ~claimed_range();
  std::uint64_t base() const { return base_; }
  void keep() { base_ = size_ = 0; }  ///< for the life of the process

 private:
  std::uint64_t base_ = 0, size_ = 0;
};

/// The file's pages from `offset` on, in the place of what this process has claimed there: both ends see at
/// once what the other writes. A child of fork() has none of them.
bool map_shared(std::uint64_t address, std::uint64_t size, int file, std::uint64_t offset);

/// Addresses that the device chose (variables of modules, pools), claimed in this process page by page, so
/// that the direction of a copy can never be guessed wrong. Kept for good: a claim costs nothing.
class foreign_claims {
 public:
  /// False: something of the program lies there.
  bool claim(std::uint64_t address, std::uint64_t size);
  /// Claimed, and readable and writable: zero until written. The pages that it touches are shared with
  /// neighbours.
  bool open(std::uint64_t address, std::uint64_t size);
  /// The same with pages that the server has, too: of a file in which a byte's offset is its address. Whole
  /// pages.
  bool share(std::uint64_t address, std::uint64_t size, int file);
  /// Claimed still, but empty and out of reach again.
  void close(std::uint64_t address, std::uint64_t size);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> claimed_;  // begin -> end, whole pages, never touching
};

/// Free addresses of one slot, first fit in granules.
class slot_addresses {
 public:
  slot_addresses(std::uint64_t base, std::uint64_t size) { free_[base] = size; }
  /// 0 when no hole is large enough. `size` is rounded up to the granule by the caller.
  std::uint64_t take(std::uint64_t size, std::uint64_t alignment = window_granule);
  /// False: not all of it is free.
  bool take_at(std::uint64_t base, std::uint64_t size);
  void give_back(std::uint64_t base, std::uint64_t size);

 private:
  void cut(std::map<std::uint64_t, std::uint64_t>::iterator hole, std::uint64_t base, std::uint64_t size);

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // base -> size, never adjacent
};

/// Bases tried in order; see design section 7 on sanitizers and 39-bit clients.
std::vector<std::uint64_t> window_base_candidates();

}  // namespace outboard::frontend
