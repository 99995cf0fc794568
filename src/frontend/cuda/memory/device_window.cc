#include "frontend/cuda/memory/device_window.hh"

#include <algorithm>

#include "base/log.hh"

namespace outboard::frontend {

void device_window::claim() {
  for (const std::uint64_t slot : {1ull << 40, 1ull << 38, 1ull << 36}) {
    for (const std::uint64_t base : window_base_candidates()) {
      auto claimed = claimed_range::claim(base, slot * (slots_claimed + 1));  // the last is the arena's
      if (!claimed) continue;
      claimed_ = std::move(*claimed);
      slot_size_ = slot;
      return;
    }
  }
  log::warn("no free address range for device memory: addresses will be the device's own");
}

bool device_window::open(const marshal::snapshot& facts) {
  if (!facts.own_addresses) return true;
  if (slot_size_ == 0 || facts.window_base != base() || facts.window_slot_size != slot_size_) return false;
  for (std::size_t i = 0; i < std::min<std::size_t>(facts.devices.size(), slots_claimed); ++i) {
    // The slot's first granule stays unused, so that no valid address is a slot's base.
    slots_.push_back(std::make_unique<slot_addresses>(base() + i * slot_size_ + window_granule,
                                                      slot_size_ - window_granule));
  }
  return true;
}

slot_addresses* device_window::slot_at(std::uint64_t address) const {
  if (address < base() || slots_.empty()) return nullptr;
  const std::uint64_t slot = (address - base()) / slot_size_;
  return slot < slots_.size() ? slots_[slot].get() : nullptr;
}

}  // namespace outboard::frontend
