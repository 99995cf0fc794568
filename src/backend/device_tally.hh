// Bytes of device memory that this session holds, by device. Kept by whoever allocates and frees; any thread.
// Where the worker has an activity page they stand in it, so that NVML's helper answers with the same
// numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "backend/activity.hh"
#include "marshal/snapshot.hh"

namespace outboard::backend {

class device_tally {
 public:
  /// Before anything is counted. `page` may be null and outlives this object.
  void open(const marshal::snapshot& facts, activity_page* page);

  /// Of a device that there is not: not counted.
  void add(std::int32_t device, std::uint64_t bytes) { change(device, bytes, 0); }
  void take(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0); }
  /// Handed out of pools, which hold more than that (keep()).
  void add_pooled(std::int32_t device, std::uint64_t bytes) { change(device, bytes, bytes); }
  void take_pooled(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0 - bytes); }

  std::uint64_t bytes(std::int32_t device) const;
  std::uint64_t pooled(std::int32_t device) const;

 private:
  void change(std::int32_t device, std::uint64_t bytes, std::uint64_t pooled);
  bool known(std::int32_t device) const {
    return device >= 0 && static_cast<std::size_t>(device) < most_shown_boards;
  }

  shown_boards own_{};
  shown_boards* boards_ = &own_;
  std::array<std::atomic<std::uint64_t>, most_shown_boards> pooled_{};
};

}  // namespace outboard::backend
