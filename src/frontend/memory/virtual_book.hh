// The front-end's books of virtual memory management: which ranges the program has reserved and what it has
// mapped in them. Knows no calls. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace outboard::frontend {

/// A reserved range: cut from the window's slot of `slot`, or (-1) one that the device chose.
struct reservation {
  std::uint64_t base = 0, size = 0;
  std::int32_t slot = -1;
};

struct placement {
  std::uint64_t base = 0, size = 0;
  std::uint64_t handle = 0;  ///< of the physical memory
};

class virtual_book {
 public:
  void reserve(const reservation& made);
  /// Nothing: no range is exactly this, or something is mapped in it.
  std::optional<reservation> free(std::uint64_t base, std::uint64_t size);
  /// False: not inside one range, or something lies there.
  bool place(const placement& wanted);
  /// Takes out what tiles [base, base + size) exactly; nothing otherwise.
  std::vector<placement> displace(std::uint64_t base, std::uint64_t size);
  /// Do placements tile it exactly?
  bool tiled(std::uint64_t base, std::uint64_t size) const;
  std::optional<placement> at(std::uint64_t address) const;

 private:
  using placements = std::map<std::uint64_t, placement>;
  bool tiled_locked(std::uint64_t base, std::uint64_t size) const;
  bool vacant(std::uint64_t base, std::uint64_t size) const;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, reservation> ranges_;
  placements placed_;
};

}  // namespace outboard::frontend
