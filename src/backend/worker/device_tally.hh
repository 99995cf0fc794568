// Bytes of device memory that this session holds, by device, and of the host's memory that it made as
// cuMemCreate makes it. Kept by whoever allocates and frees; any thread. Where the worker has an activity
// page the devices' stand in it, so that NVML's helper answers with the same numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "backend/worker/activity.hh"
#include "backend/worker/shared_account.hh"

namespace outboard::backend {

class device_tally {
 public:
  /// Before anything is counted: the devices' boards (board_number(); 0: none), in their order. `page` may be
  /// null and outlives this object.
  /// `account`, likewise: what it counts is its identity's, too; its devices are set.
  void open(std::span<const std::uint64_t> boards, activity_page* page, account_share* account = nullptr);

  /// Of a device that there is not: not counted.
  void add(std::int32_t device, std::uint64_t bytes) { change(device, bytes, 0); }
  void take(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0); }
  /// Handed out of pools, which hold more than that (keep()).
  void add_pooled(std::int32_t device, std::uint64_t bytes) { change(device, bytes, bytes); }
  void take_pooled(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0 - bytes); }

  void add_of_host(std::uint64_t bytes) { of_host_.fetch_add(bytes, std::memory_order_relaxed); }
  void take_of_host(std::uint64_t bytes) { of_host_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t of_host() const { return of_host_.load(std::memory_order_relaxed); }

  std::uint64_t bytes(std::int32_t device) const;
  /// May the session hold so much more of it, if `most` is all that it may?
  bool fits(std::int32_t device, std::uint64_t more, std::uint64_t most) const {
    return more <= most && bytes(device) <= most - more;
  }
  std::uint64_t pooled(std::int32_t device) const;

 private:
  void change(std::int32_t device, std::uint64_t bytes, std::uint64_t pooled);
  bool known(std::int32_t device) const {
    return device >= 0 && static_cast<std::size_t>(device) < most_shown_boards;
  }

  shown_boards own_{};
  shown_boards* boards_ = &own_;
  account_share* account_ = nullptr;
  std::array<std::atomic<std::uint64_t>, most_shown_boards> pooled_{};
  std::atomic<std::uint64_t> of_host_{0};
};

}  // namespace outboard::backend
