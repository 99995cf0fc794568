// Changes of memory that both ends keep at the same address: found by comparing with a shadow (what the other
// end is known to have), carried byte by byte, so that what the other end wrote meanwhile beside them stays.
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

#include "marshal/cuda/late_words.hh"

namespace outboard::marshal {

/// Values in [low, low + size) that are of interest where they are sent.
struct address_watch {
  std::uint64_t low = 0, size = 0;
  std::vector<std::uint64_t>* noted = nullptr;
  const address_watch* also = nullptr;  ///< a further range, noted elsewhere
};

/// A message of changes is at most so long, but for its last page, and of that words half, which are then
/// sent before what they stand for: more of them are no words that anybody waits for.
inline constexpr std::size_t most_changes = 8u << 20, most_late_changes = most_changes / 2;

/// Appends the words that are to come last, once all other changes are there.
void append_words(late_words& late, std::vector<std::byte>& changes);

/// Appends what differs in [from, memory.size()) to `out`, brings the shadow up to date, and stops after
/// `most` bytes of output or when `budget` bytes have been looked at. `address` names memory[0] to the other
/// end. Returns where to go on; memory.size() when all was looked at. `from` must be a multiple of
/// change_line.
std::size_t find_changes(std::uint64_t address, std::span<const std::byte> memory,
                         std::span<std::byte> shadow, std::size_t from, std::size_t most, std::size_t budget,
                         std::vector<std::byte>& out, const address_watch& watch = {},
                         late_words* late = nullptr);

/// Where changes go: `shadow` may be empty.
struct change_target {
  std::span<std::byte> memory, shadow;  ///< from the run's address to the end of its block
  bool alone = false;                   ///< nobody else reads or writes the memory meanwhile
  bool gone = false;                    ///< the block is no more: what changed in it is passed by
};

/// Tells of each run, until one is malformed.
void for_each_run(std::span<const std::byte> changes,
                  const std::function<void(std::uint64_t address, std::uint32_t lines)>& tell);

/// Applies changes: whole lines first, then masked ones, then those that hold one of `last` (ascending). A
/// line that is named more than once ends as the last one says. `target` gives nothing for an address that is
/// in no block. False: not a list of changes, or one that leaves its block; what came before the fault is
/// done.
bool apply_changes(std::span<const std::byte> changes,
                   const std::function<std::optional<change_target>(std::uint64_t address)>& target,
                   std::span<const std::uint64_t> last = {});

/// Notes the values of interest in words at multiples of `stride` bytes.
void find_addresses(std::span<const std::byte> bytes, std::size_t stride, const address_watch& watch);

}  // namespace outboard::marshal
