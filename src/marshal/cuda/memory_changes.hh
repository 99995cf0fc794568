// Changes of memory that both ends keep at the same address: found by comparing with a shadow (what the other
// end is known to have), carried byte by byte, so that what the other end wrote to neighbouring bytes
// meanwhile stays.
//
//   changes := run*
//   run     := u64 address, u32 lines, u8 masked, line*lines      a line: 64 bytes; the last may end with its
//   block line    := bytes                                              masked 0: all 64
//            | u64 mask, a byte for each bit set                  masked 1: bit i stands for byte i
//
// Free functions over memory that other threads (or a device) may write at the same time: each line is read
// once. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace outboard::marshal {

inline constexpr std::size_t change_line = 64;

/// Values in [low, low + size) are collected while they are sent.
struct address_watch {
  std::uint64_t low = 0, size = 0;
  std::vector<std::uint64_t>* noted = nullptr;
  const address_watch* also = nullptr;  ///< a second range with a list of its own
};

/// Appends what differs in [from, memory.size()) to `out`, updates the shadow, and stops after `most` bytes
/// of output or when it has read `budget` bytes. `address` is the other end's name for memory[0]. Returns
/// where to continue, or memory.size() if it has read everything. `from` must be a multiple of change_line.
std::size_t find_changes(std::uint64_t address, std::span<const std::byte> memory,
                         std::span<std::byte> shadow, std::size_t from, std::size_t most, std::size_t budget,
                         std::vector<std::byte>& out, const address_watch& watch = {});

/// Where changes are stored; `shadow` may be empty.
struct change_target {
  std::span<std::byte> memory, shadow;  ///< from the run's address to the end of its block
};

/// Applies changes; `target` returns nothing for an address that is in no block. Returns false if this is not
/// a list of changes, or a change leaves its block; changes before the fault have been applied.
bool apply_changes(std::span<const std::byte> changes,
                   const std::function<std::optional<change_target>(std::uint64_t address)>& target);

/// Collects the values inside the watched ranges from words at multiples of `stride` bytes.
void find_addresses(std::span<const std::byte> bytes, std::size_t stride, const address_watch& watch);

}  // namespace outboard::marshal
