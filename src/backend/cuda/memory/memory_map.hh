// Device memory that this session has mapped, and the session's ledger of it. Memory comes from the window:
// fresh physical memory mapped at the address that the front-end chose; or, where it chose none, from
// wherever the driver likes. Any thread (own lock).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/worker/device_tally.hh"
#include "base/fd.hh"
#include "marshal/cuda/sharing_bodies.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

struct mapping {
  std::uint64_t address = 0, size = 0;
  CUmemGenericAllocationHandle memory = 0;  ///< 0: a block of the driver's, at its address
  std::int32_t device = 0;
  std::uint64_t context = 0;
  std::uint64_t ticket = 0;  ///< of the request that made it: its place in the records
  /// Another session's memory: its token.
  std::optional<marshal::share_token> imported = {};
  /// Of memory that another worker has made: it can go to a third by this alone. A driver does not export
  /// what it has imported (1 on a 580 driver).
  std::shared_ptr<const unique_fd> piece = {};
};

/// Where a block of the program's lies in memory that can be shared.
struct shareable_piece {
  CUmemGenericAllocationHandle memory = 0;
  std::uint64_t mapped = 0, offset = 0;
  std::int32_t device = 0;
  std::uint64_t context = 0;
  std::shared_ptr<const unique_fd> piece = {};  ///< as mapping has it
};

/// A stream-ordered allocation: the request that would make it again, at the same address or not at all.
struct pool_block {
  marshal::pool_body made;
  std::uint64_t context = 0, ticket = 0;
  std::optional<marshal::share_token> imported = {};       ///< another session's
  std::shared_ptr<const marshal::share_token> offer = {};  ///< of ours to other sessions
  std::int32_t device = -1;                                ///< whose memory it is
};

class memory_map {
 public:
  memory_map(const api::driver_table& driver, device_tally& held) : driver_(driver), held_(held) {}

  /// Reserves the window's slots for `devices` devices. False: this device has no such thing, or the
  /// addresses are taken; memory then comes from wherever the driver likes.
  bool reserve_window(std::uint64_t base, std::uint64_t slot_size, const marshal::snapshot& facts);

  /// Maps fresh memory. With a window `address` is the peer's wish and is checked; without, or where it is
  /// 0, the driver's answer.
  CUresult map(std::uint64_t& address, std::uint64_t size, std::int32_t device, std::uint64_t context,
               std::uint64_t ticket);
  /// The device must be done with it. CUDA_ERROR_INVALID_VALUE: nothing of ours starts there.
  CUresult unmap(std::uint64_t address);
  /// Addresses of one slot of the window at which nothing of ours is mapped.
  bool vacant_in_window(std::uint64_t address, std::uint64_t size) const;
  /// Nothing: no memory of this session's own holds the block, or the device cannot share it.
  std::optional<shareable_piece> shareable(std::uint64_t address, std::uint64_t size) const;
  /// The block's offer to other sessions lives as long as the block.
  std::shared_ptr<const marshal::share_token> offer_of(std::uint64_t address) const;
  void keep_offer(std::uint64_t address, std::uint64_t context,
                  std::shared_ptr<const marshal::share_token> offer);
  void forget_offer(std::uint64_t address);

  /// Another session's memory at an address of the window; also opened to device `user`. Takes `memory` over.
  CUresult map_imported(mapping wanted, std::int32_t user);

  /// Memory that another worker of this session has made, at its place again. Takes `m.memory` over.
  CUresult adopt(const mapping& m);
  bool has_offers() const;
  /// Device `from` may use all memory of device `to`, present and future (cuCtxEnablePeerAccess of a
  /// context).
  CUresult open_to_peer(std::int32_t to, std::int32_t from, std::uint64_t context);
  void close_to_peer(std::int32_t to, std::int32_t from, std::uint64_t context);

  /// All of one context (it was reset or destroyed). `unmap_too` is false when the driver has freed it
  /// already.
  void drop_context(std::uint64_t context, bool unmap_too);

  /// The ledger: stream-ordered allocations are the driver's pools', but counted here too.
  void pool_allocated(const marshal::pool_body& made, std::int32_t device, std::uint64_t context,
                      std::uint64_t ticket);
  std::vector<std::int32_t> pool_devices() const;  ///< on which anything came from a pool, ever
  /// Whose memory it was; nothing: it is none.
  std::optional<std::int32_t> pool_freed(std::uint64_t address);

  /// Another session's, in a pool of its own: in no ledger of ours.
  void pool_imported(const marshal::share_pointer_body& made, std::uint64_t context, std::uint64_t ticket);
  /// Nothing: no block of a pool starts there.
  std::optional<pool_block> pooled_at(std::uint64_t address) const;
  bool keep_pool_offer(std::uint64_t address, std::shared_ptr<const marshal::share_token> offer);

  void array_made(std::uint64_t id, std::uint64_t size, std::int32_t device, std::uint64_t context);
  void array_gone(std::uint64_t id);

  std::uint64_t bytes() const;       ///< mapped
  std::uint64_t pool_bytes() const;  ///< handed out from pools
  std::uint64_t array_bytes() const;
  std::vector<mapping> all() const;
  std::vector<pool_block> all_pooled() const;

 private:
  struct array {
    std::uint64_t size = 0, context = 0;
    std::int32_t device = -1;
  };

  bool fits_window(std::uint64_t address, std::uint64_t size, std::int32_t device) const;
  CUresult map_window(const mapping& wanted, CUmemGenericAllocationHandle& memory);
  void release(const mapping& m);
  void uncount(const mapping& gone);
  void uncount(const array& gone);
  CUresult place(const mapping& m);
  std::vector<CUmemAccessDesc> access_to(std::int32_t device) const;

  const api::driver_table& driver_;
  device_tally& held_;
  std::uint64_t base_ = 0, slot_size_ = 0, slots_ = 0;  // slot_size_ 0: no window
  bool by_descriptor_ = false;                          // the device's memory can leave the process
  mutable std::mutex mutex_;
  std::map<std::uint64_t, mapping> mappings_;
  std::map<std::uint64_t, pool_block> pooled_;
  std::set<std::int32_t> pool_devices_;
  std::map<std::uint64_t, array> arrays_;  // by id
  struct held_offer {
    std::uint64_t context = 0;
    std::shared_ptr<const marshal::share_token> token;
  };
  std::map<std::uint64_t, held_offer> offers_;  // by address of the program's block
  // By device: which others may use its memory, and the contexts that asked for it.
  std::map<std::int32_t, std::map<std::int32_t, std::set<std::uint64_t>>> peers_;
  std::uint64_t bytes_ = 0, pool_bytes_ = 0, array_bytes_ = 0;
};

}  // namespace outboard::backend
