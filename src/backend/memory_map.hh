// Device memory that this session has mapped, and the session's ledger of it. Memory comes from the window:
// fresh physical memory mapped at the address that the front-end chose. Any thread (own lock).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "marshal/bodies.hh"
#include "marshal/snapshot.hh"

namespace outboard::backend {

struct mapping {
  std::uint64_t address = 0, size = 0;
  CUmemGenericAllocationHandle memory = 0;
  std::int32_t device = 0;
  std::uint64_t context = 0;
  std::uint64_t ticket = 0;  ///< of the request that made it: its place in the records
};

/// A stream-ordered allocation: the request that would make it again, at the same address or not at all.
struct pool_block {
  marshal::pool_body made;
  std::uint64_t context = 0, ticket = 0;
};

class memory_map {
 public:
  explicit memory_map(const api::driver_table& driver) : driver_(driver) {}

  /// Reserves the window's slots for `devices` devices. False: this device has no such thing, or the
  /// addresses are taken; memory then comes from wherever the driver likes.
  bool reserve_window(std::uint64_t base, std::uint64_t slot_size, const marshal::snapshot& facts);

  /// Maps fresh memory. With a window `address` is the peer's wish and is checked; without, the driver's
  /// answer.
  CUresult map(std::uint64_t& address, std::uint64_t size, std::int32_t device, std::uint64_t context,
               std::uint64_t ticket);
  /// The device must be done with it. CUDA_ERROR_INVALID_VALUE: nothing of ours starts there.
  CUresult unmap(std::uint64_t address);
  /// All of one context (it was reset or destroyed). `unmap_too` is false when the driver has freed it
  /// already.
  void drop_context(std::uint64_t context, bool unmap_too);

  /// The ledger: stream-ordered allocations are the driver's pools', but counted here too.
  void pool_allocated(const marshal::pool_body& made, std::int32_t device, std::uint64_t context,
                      std::uint64_t ticket);
  std::vector<std::int32_t> pool_devices() const;  ///< on which anything came from a pool, ever
  bool pool_freed(std::uint64_t address);          ///< false: it is not one

  void array_made(std::uint64_t id, std::uint64_t size, std::uint64_t context);
  void array_gone(std::uint64_t id);

  std::uint64_t bytes() const;       ///< mapped
  std::uint64_t pool_bytes() const;  ///< handed out from pools
  std::uint64_t array_bytes() const;
  std::vector<mapping> all() const;
  std::vector<pool_block> all_pooled() const;

 private:
  bool fits_window(std::uint64_t address, std::uint64_t size, std::int32_t device) const;
  CUresult map_window(const mapping& wanted, CUmemGenericAllocationHandle& memory);
  void release(const mapping& m);

  const api::driver_table& driver_;
  std::uint64_t base_ = 0, slot_size_ = 0;  // slot_size_ 0: no window
  mutable std::mutex mutex_;
  std::map<std::uint64_t, mapping> mappings_;
  std::map<std::uint64_t, pool_block> pooled_;
  std::set<std::int32_t> pool_devices_;
  struct array {
    std::uint64_t size = 0, context = 0;
  };
  std::map<std::uint64_t, array> arrays_;  // by id
  std::uint64_t bytes_ = 0, pool_bytes_ = 0, array_bytes_ = 0;
};

}  // namespace outboard::backend
