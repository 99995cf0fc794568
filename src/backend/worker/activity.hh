// What a worker tells of itself while it works, in a page that it shares with its daemon and, read-only, with
// the helper that answers NVML; both believe nothing but that the numbers are numbers. The daemon answers in
// the same page: whether the session is held up, and whether warm workers start beside it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// What the session holds of one board; `board` by its PCI address (board_number()), 0: none.
struct shown_board {
  std::atomic<std::uint64_t> board, bytes;
};
inline constexpr std::size_t most_shown_boards = 64;
using shown_boards = std::array<shown_board, most_shown_boards>;

/// "0000:1B:00.0" as one number, never 0; 0: no such address. Equal for all spellings.
std::uint64_t board_number(std::string_view pci_bus_id);

struct activity_page {
  std::atomic<std::uint64_t> device_bytes;  ///< by the device's own word; 0 where it has a driver that tells
  shown_boards boards;                      ///< by the session's ledger
  // A locked session (cuCheckpointProcessLock): the daemon sets `held` and waits until `busy` is 0, the
  // worker counts itself busy and looks at `held` then, so one of them sees the other (sequentially
  // consistent).
  std::atomic<std::uint32_t> held;
  std::atomic<std::uint32_t> busy;  ///< requests under way
  /// Written by the daemon: since when, in milliseconds of the steady clock, warm workers start or are about
  /// to, and take memory of devices meanwhile; 0: they do not.
  std::atomic<std::uint64_t> unsettled_since;
};
static_assert(sizeof(activity_page) <= 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The worker's side: lives as long as the process.
struct own_activity {
  unique_fd descriptor;
  activity_page* page = nullptr;
  static result<own_activity> make();
};

/// The reader's side.
class shown_activity {
 public:
  /// Nothing where the descriptor is no sealed page.
  static std::optional<shown_activity> open(const unique_fd& descriptor);
  shown_activity(shown_activity&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  shown_activity& operator=(shown_activity&&) = delete;
  ~shown_activity();

  /// Of the session's ledger; 0 for a board that it does not use. Boards without a number count together.
  std::uint64_t bytes_on(std::uint64_t board) const;
  /// The same of all of them, those without a number too.
  std::uint64_t held_bytes() const;
  std::uint64_t device_bytes() const { return page_->device_bytes.load(std::memory_order_relaxed); }

 private:
  explicit shown_activity(const activity_page* page) : page_(page) {}
  const activity_page* page_;
};

/// The daemon's side of a session that can be locked, and is told of warm workers. One thread.
class session_hold {
 public:
  /// Nothing where the descriptor is no sealed page.
  static std::optional<session_hold> open(const unique_fd& descriptor);
  session_hold(session_hold&& other) noexcept
      : state(other.state), page_(std::exchange(other.page_, nullptr)) {}
  session_hold& operator=(session_hold&&) = delete;
  ~session_hold();

  int state = 0;  ///< CUprocessState

  void set(bool held) { page_->held.store(held ? 1 : 0); }
  bool is_held() const { return page_->held.load() != 0; }
  bool at_rest() const { return page_->busy.load() == 0; }
  void set_unsettled_since(std::uint64_t milliseconds) { page_->unsettled_since.store(milliseconds); }

 private:
  explicit session_hold(activity_page* page) : page_(page) {}
  activity_page* page_;
};

}  // namespace outboard::backend
