// Device memory that the sessions of one identity hold together, in pages that its workers share: each has a
// slot, adds up what all hold and takes nothing that would be too much. The daemon makes the pages, gives the
// slots and clears that of a worker which has ended; so what a killed worker held is free at once, and nobody
// waits for a lock of the dead. A worker that a stranger has taken over can write nonsense here: that costs
// its own identity, and nothing reads more than numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

inline constexpr std::size_t most_account_slots = 1024;
/// Of these the last one stands for all devices that the daemon does not lend by a PCI address.
inline constexpr std::size_t most_account_devices = 64;

struct account_slot {
  /// `claimed`: what requests under way are about to take. It is set before anybody adds up and taken back
  /// after `held` has grown, so a sum may be too large for a moment and is never too small.
  std::array<std::atomic<std::uint64_t>, most_account_devices> held, claimed;
};

struct account_pages {
  std::atomic<std::uint64_t> most;   ///< bytes of each device that all may hold
  std::atomic<std::uint32_t> slots;  ///< no slot above has ever been given
  std::array<std::atomic<std::uint64_t>, most_account_devices - 1> boards;  ///< board_number(); 0: none
  alignas(4096) std::array<account_slot, most_account_slots> all;
};

/// The daemon's side. One thread.
class memory_account {
 public:
  /// `boards`: of the devices lent.
  static result<memory_account> make(std::uint64_t most, std::span<const std::uint64_t> boards);
  memory_account(memory_account&& other) noexcept
      : descriptor_(std::move(other.descriptor_)),
        pages_(std::exchange(other.pages_, nullptr)),
        taken_(std::move(other.taken_)) {}
  memory_account& operator=(memory_account&&) = delete;
  ~memory_account();

  const unique_fd& descriptor() const { return descriptor_; }
  void set_most(std::uint64_t most) { pages_->most.store(most); }
  std::uint64_t most() const { return pages_->most.load(); }
  /// Nothing: all are taken.
  std::optional<std::uint32_t> take_slot();
  void give_back(std::uint32_t slot);
  bool is_unused() const;
  /// By board, of those lent; the sum of all slots.
  std::vector<std::uint64_t> held() const;

 private:
  explicit memory_account(unique_fd descriptor, account_pages* pages)
      : descriptor_(std::move(descriptor)), pages_(pages) {}
  unique_fd descriptor_;
  account_pages* pages_;
  std::vector<bool> taken_ = std::vector<bool>(most_account_slots);
};

/// A worker's side, of its one session. The pages stay as long as the process: a platform may let go of
/// memory when the session is over.
class account_share {
 public:
  /// Nothing where the descriptor is no such pages.
  static std::optional<account_share> open(const unique_fd& descriptor, std::uint32_t slot);
  std::uint64_t most() const { return pages_->most.load(); }
  /// Before anything is counted: the boards of this worker's devices, in its order.
  void set_devices(std::span<const std::uint64_t> boards);
  /// The session holds so much more (modulo 2^64: also less). Any thread.
  void change(std::int32_t device, std::uint64_t bytes);
  /// May the session take so much more? What it has in `spare` counts as free. If so it is claimed until the
  /// calling thread settles; a request that asks several times holds all that it has claimed. Any thread.
  bool claim(std::int32_t device, std::uint64_t bytes, std::uint64_t spare = 0);
  /// The request of the calling thread is over: what it has taken is held by now, what it has not is free
  /// again. Claims of other threads and other shares stay. On the thread that claimed.
  void settle();
  /// What may still be taken; nothing: more is held than may be.
  std::optional<std::uint64_t> left(std::int32_t device) const;
  /// Less than that is left, and nobody else's memory would help.
  bool lacks(std::int32_t device, std::uint64_t bytes) const {
    const auto rest = left(device);
    return !rest || *rest < bytes;
  }

 private:
  struct sum {
    std::uint64_t held = 0, claimed = 0;
  };
  account_share(account_pages* pages, std::uint32_t slot) : pages_(pages), slot_(slot) {}
  account_slot& own() const { return pages_->all[slot_]; }
  std::size_t place_of(std::int32_t device) const;
  sum sum_of(std::size_t place) const;

  account_pages* pages_;
  std::uint32_t slot_;
  std::vector<std::size_t> places_;
};

}  // namespace outboard::backend
