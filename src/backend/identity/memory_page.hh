// What the sessions of one identity hold together: a memory file that the daemon makes for the identity and
// gives to the workers of its sessions. Each worker has a slot in it and counts there. Before it allocates, a
// worker reserves the bytes and only then looks at the sum of all slots, so that two workers that allocate at
// once do not both get the last bytes. All workers of the identity can write all of it (docs/design.md says
// why), so a reader uses what it finds as numbers only: sums saturate, and no address or index is among them.
// Any thread, any process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "backend/worker/activity.hh"
#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// In bytes; 0: no limit.
struct memory_limits {
  std::uint64_t device = 0;        ///< of each device, for all sessions of the identity together
  std::uint64_t host = 0;          ///< of the server's machine, likewise
  std::uint64_t session_host = 0;  ///< of the server's machine, for one session
  bool operator==(const memory_limits&) const = default;
};

/// Sessions of one identity that can be counted at the same time.
inline constexpr std::uint32_t most_memory_slots = 16384;
/// A column is the server's own memory, or a device's.
inline constexpr std::size_t memory_columns = most_shown_boards + 1;
inline constexpr std::size_t host_column = 0;

/// A mapping of the file. Moved, never copied.
class memory_page {
 public:
  /// Makes the file, too. The daemon's side.
  static result<std::pair<unique_fd, memory_page>> make();
  /// An error: it is not such a file.
  static result<memory_page> open(const unique_fd& file);
  memory_page(memory_page&& other) noexcept : layout_(std::exchange(other.layout_, nullptr)) {}
  memory_page& operator=(memory_page&&) = delete;
  ~memory_page();

  void set_limits(const memory_limits& limits);
  memory_limits limits() const;
  /// A new session's slot holds nothing. `slot` is below most_memory_slots.
  void clear(std::uint32_t slot);

  /// The column of the device with this number (board_number(), or any other that is not 0); a new one if it
  /// has none. Nothing: too many devices.
  std::optional<std::size_t> column_of(std::uint64_t board);
  /// The same without a new one.
  std::optional<std::size_t> find_column(std::uint64_t board) const;

  struct sums {
    std::uint64_t held = 0, reserved = 0;
  };
  /// Adds up all slots that were ever given out, or the first `slots`, if the caller has a number of its own.
  sums all_of(std::size_t column, std::uint32_t slots = most_memory_slots) const;
  /// The most that the first `slots` hold of one device.
  std::uint64_t held_of_fullest_device(std::uint32_t slots) const;

  std::uint64_t held(std::uint32_t slot, std::size_t column) const;
  std::uint64_t held_on_devices(std::uint32_t slot) const;

  /// Counts in a slot, modulo 2^64.
  void add(std::uint32_t slot, std::size_t column, std::uint64_t bytes);
  /// Reserves so much for the slot if the column's limit allows. Waits up to some milliseconds for
  /// reservations of others, which may come to nothing. What is reserved is to be released, when it has been
  /// added or not.
  bool reserve(std::uint32_t slot, std::size_t column, std::uint64_t bytes);
  void release(std::uint32_t slot, std::size_t column, std::uint64_t bytes);
  /// The column's limit in bytes (0: none), and how much of it is neither held nor reserved.
  std::uint64_t limit_of(std::size_t column) const;
  std::uint64_t left_of(std::size_t column) const;
  bool fits(std::size_t column, std::uint64_t more) const;

 private:
  struct layout;
  explicit memory_page(layout* at) : layout_(at) {}
  layout* layout_;
};

}  // namespace outboard::backend
