// How much memory of each device this session may hold, by the server's configuration, and all sessions of
// its identity together. What is handed out and mapped is in the tally; pools and graphs keep more than that,
// which is asked for where it matters and given back before anything is refused, as a driver does it. With
// the session's turn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/objects.hh"
#include "backend/worker/device_tally.hh"

namespace outboard::backend {

class quota {
 public:
  quota(const api::driver_table& driver, object_tables& objects, device_tally& held)
      : driver_(driver), objects_(objects), held_(held) {}

  /// `most` bytes of each device; 0: as much as there is, and nothing here costs anything.
  /// `account`, unless it is null, has a limit, too, and outlives this object; `most` is then no more than
  /// that.
  void open(std::uint64_t most, account_share* account) {
    most_ = most;
    account_ = account;
  }
  bool is_set() const { return most_ != 0; }

  /// Whether the session's own limit would allow it, whatever its identity holds.
  bool allows(std::int32_t device, std::uint64_t bytes) const { return !is_set() || fits(device, bytes); }

  /// The request of this thread is over, and has in the tally what it was admitted for, or does not need it.
  void settle() {
    if (account_) account_->settle();
  }

  /// CUDA_ERROR_OUT_OF_MEMORY: the session would hold more than it may, or its identity would.
  CUresult admit(std::int32_t device, std::uint64_t bytes);
  /// The same for an allocation from a pool, which uses first what the pool keeps.
  CUresult admit_pooled(std::int32_t device, std::uint64_t bytes);
  /// A pool of the device has handed out or taken back.
  void pools_changed(std::int32_t device);
  /// A graph is to be launched: what graphs hold is known only afterwards, so the session must hold no more
  /// than it may before.
  CUresult admit_graph();
  void graph_launched();
  /// A graph has memory of its own on this device from now on.
  void graph_memory_on(std::int32_t device) { graph_devices_.insert(device); }
  bool graphs_have_memory() const { return !graph_devices_.empty(); }
  /// What the device's free memory is for this session, of `free` bytes that there are.
  std::uint64_t free_of(std::int32_t device, std::uint64_t free);

  /// Pools that the program made; -1: on no device. The devices' own are known.
  void pool_made(std::uint64_t pool, std::int32_t device) { pools_[pool] = device; }
  /// Nothing: a device's own.
  std::optional<std::int32_t> device_of(std::uint64_t pool) const;

 private:
  bool fits(std::int32_t device, std::uint64_t bytes) const;
  bool claims(std::int32_t device, std::uint64_t bytes) {
    return !account_ || account_->claim(device, bytes);
  }
  std::vector<CUmemoryPool> pools_of(std::int32_t device) const;
  void count_kept(std::int32_t device);
  void give_back(std::int32_t device);

  const api::driver_table& driver_;
  object_tables& objects_;
  device_tally& held_;
  std::uint64_t most_ = 0;
  account_share* account_ = nullptr;
  std::map<std::uint64_t, std::int32_t> pools_;  ///< by id, which is never used again
  std::set<std::int32_t> graph_devices_;
  std::map<std::int32_t, std::uint64_t> kept_;  ///< by device: in the tally beyond what was handed out
};

}  // namespace outboard::backend
