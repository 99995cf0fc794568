// The window of this session (frontend/window.hh): the claimed range, and the free addresses of each device's
// slot. Claimed before the hello, opened when the snapshot says how many devices there are; then any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/window.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend {

class device_window {
 public:
  /// Claims a slot for each device that there may be, and one more for the arena. `slot` 0 afterwards: no
  /// range is free.
  void claim();
  std::uint64_t base() const { return claimed_.base(); }
  std::uint64_t slot_size() const { return slot_size_; }
  std::uint64_t arena_base() const { return base() + slots_claimed * slot_size_; }

  /// From now on there are slots, unless the server cannot map at addresses of ours. False: the server names
  /// another range than the one that was claimed here, where the program may have something of its own.
  bool open(const marshal::snapshot& facts);

  /// nullptr: this device's addresses are its own.
  slot_addresses* slot(int device) const {
    return static_cast<std::size_t>(device) < slots_.size() ? slots_[static_cast<std::size_t>(device)].get()
                                                            : nullptr;
  }
  /// The one that holds this address.
  slot_addresses* slot_at(std::uint64_t address) const;

  /// From now on blocks come from where the driver likes: it does not dump what is mapped in a window
  /// (observed on 580.159.04).
  void leave() { left_.store(true, std::memory_order_relaxed); }
  bool left() const { return left_.load(std::memory_order_relaxed); }

 private:
  /// Devices a session may have; bounds the claimed range until the snapshot says how many there are.
  static constexpr std::uint64_t slots_claimed = 8;

  claimed_range claimed_;
  std::uint64_t slot_size_ = 0;
  std::vector<std::unique_ptr<slot_addresses>> slots_;
  std::atomic<bool> left_{false};
};

}  // namespace outboard::frontend
