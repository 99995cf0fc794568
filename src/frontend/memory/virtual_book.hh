// The front-end's books of virtual memory management: which ranges the program has reserved and what it has
// mapped in them. Makes no calls. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace outboard::frontend {

/// A reserved range: cut from the window's slot of `slot`, or (-1) one that the device chose.
struct reservation {
  std::uint64_t base = 0, size = 0;
  std::int32_t slot = -1;
  bool used = false;  ///< something was mapped in it, and is no more
};

struct placement {
  std::uint64_t base = 0, size = 0;
  std::uint64_t handle = 0;  ///< of the physical memory
  bool host = false;         ///< the host's
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> access =
      {};  ///< host: by location, its flags
};

class virtual_book {
 public:
  void reserve(const reservation& made);
  /// Nothing: no range is exactly this, or something is mapped in it.
  std::optional<reservation> free(std::uint64_t base, std::uint64_t size);
  /// False: not inside one range, or something lies there.
  bool place(const placement& wanted);
  /// What was placed here was not mapped after all: as if place() had never been asked.
  void withdraw(std::uint64_t base);
  /// Takes out all that lies in [base, base + size), whatever lies between, as a driver does (measured: 580).
  /// Nothing: it would cut a placement, or nothing was ever mapped in the range that holds `base`.
  std::optional<std::vector<placement>> displace(std::uint64_t base, std::uint64_t size);
  /// Do placements tile it exactly?
  bool tiled(std::uint64_t base, std::uint64_t size) const;
  std::optional<placement> at(std::uint64_t address) const;
  /// In which the address lies.
  std::optional<reservation> range_of(std::uint64_t address) const;
  /// All that tiles [base, base + size).
  std::vector<placement> within(std::uint64_t base, std::uint64_t size) const;
  /// Host: who may do what from now on.
  void note_access(std::uint64_t base, std::pair<std::int32_t, std::int32_t> location, std::uint64_t flags);
  /// Memory of the host was ever mapped.
  bool has_host() const { return has_host_.load(std::memory_order_relaxed); }

 private:
  bool vacant(std::uint64_t base, std::uint64_t size) const;

  std::atomic<bool> has_host_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, reservation> ranges_;
  std::map<std::uint64_t, placement> placed_;
};

}  // namespace outboard::frontend
