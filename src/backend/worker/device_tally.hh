// Bytes of memory that this session holds, by device, and of the server's own machine (`this_machine`). The
// code that allocates and frees keeps them; any thread. Where the worker has an activity page they are in it,
// so that NVML's helper answers with the same numbers; where its identity has a page of memory they are in
// that, too, so that all sessions of the identity know what is left for them together.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "backend/worker/activity.hh"

namespace outboard::backend {

class memory_page;

/// In place of a device's number.
inline constexpr std::int32_t this_machine = -1;

/// This session's slot in its identity's page. `page` null: there is none.
struct memory_slot {
  memory_page* page = nullptr;
  std::uint32_t number = 0;
};

class device_tally {
 public:
  device_tally();
  /// Before anything is counted: the devices' boards (board_number(); 0: none), in their order. `page` may be
  /// null and outlives this object, as the slot's does.
  void open(std::span<const std::uint64_t> boards, activity_page* page, memory_slot slot = {});

  /// Memory of a device that does not exist is not counted.
  void add(std::int32_t device, std::uint64_t bytes) { change(device, bytes, 0); }
  void take(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0); }
  /// Handed out of pools, which hold more than that (keep()).
  void add_pooled(std::int32_t device, std::uint64_t bytes) { change(device, bytes, bytes); }
  void take_pooled(std::int32_t device, std::uint64_t bytes) { change(device, 0 - bytes, 0 - bytes); }

  std::uint64_t bytes(std::int32_t device) const;
  std::uint64_t pooled(std::int32_t device) const;

  /// Room for an allocation that is under way. It ends when the allocation is in the tally or has failed.
  class reservation {
   public:
    reservation() = default;
    ~reservation() { end(); }
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    void end();

   private:
    friend class device_tally;
    device_tally* of_ = nullptr;
    std::int32_t device_ = 0;
    std::uint64_t bytes_ = 0;
    bool in_page_ = false;
  };
  /// Reserves so much in `room`, which is empty. False: the session would hold more than `most` (0: no limit
  /// of its own), or all sessions of its identity more than they may.
  bool reserve(std::int32_t device, std::uint64_t more, std::uint64_t most, reservation& room);
  /// The same at once for what is there already or costs nothing to take: on true it is in the tally.
  bool add_within(std::int32_t device, std::uint64_t more, std::uint64_t most);
  /// May the session, and its identity, hold so much more? Reserves nothing.
  bool fits(std::int32_t device, std::uint64_t more, std::uint64_t most) const;
  /// Has the session or its identity a limit?
  bool is_limited(std::int32_t device, std::uint64_t most) const {
    return most != 0 || identity_limit(device) != 0;
  }
  /// What is left of the session's `most` bytes (0: no limit) and of the identity's; ~0: there is no limit.
  std::uint64_t left(std::int32_t device, std::uint64_t most) const;

  /// How many bytes of the server's memory one session may hold: the configuration's limit, or three quarters
  /// of the machine. Never 0.
  std::uint64_t most_of_machine() const;

 private:
  void change(std::int32_t device, std::uint64_t bytes, std::uint64_t pooled);
  std::uint64_t identity_limit(std::int32_t device) const;
  static bool known(std::int32_t device) {
    return device >= this_machine && device < static_cast<std::int32_t>(most_shown_boards);
  }
  static std::size_t place_of(std::int32_t device) { return static_cast<std::size_t>(device + 1); }
  std::atomic<std::uint64_t>& counter(std::int32_t device) const;

  using numbers = std::array<std::atomic<std::uint64_t>, most_shown_boards + 1>;  // by place_of()
  static constexpr std::uint8_t no_column = 0xff;

  shown_boards own_{};
  shown_boards* boards_ = &own_;
  mutable std::atomic<std::uint64_t> machine_{0};
  numbers pooled_{};
  numbers reserved_{};
  memory_slot slot_;
  std::array<std::uint8_t, most_shown_boards + 1> columns_{};  // of the identity's page, by place_of()
};

}  // namespace outboard::backend
