// The part of an interprocess event that processes share: how many recordings there were and how many are
// done, in a page of a sealed memory file. The handle of such an event names process and descriptor of its
// maker; it travels between workers of one daemon only, with the descriptor where they cannot look into each
// other. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "api/cuda/headers.hh"
#include "device/cpu/memory/shared_file.hh"

namespace outboard::device::cpu {

class ipc_event {
 public:
  static std::shared_ptr<ipc_event> make();
  /// nullptr: no such event lives. `own`: it is this process's.
  static std::shared_ptr<ipc_event> open(const CUipcEventHandle& handle, bool& own);

  CUipcEventHandle handle() const;

  /// The descriptor behind a handle of this process, the event's; -1: there is none.
  static int descriptor_of(const CUipcEventHandle& handle);
  /// The handle of another process's event for open(), here, where its descriptor has come with it. The
  /// caller keeps the descriptor until then.
  static CUipcEventHandle received_with(const CUipcEventHandle& handle, int descriptor);

  /// A recording begins; finish() with the number says that the stream has come to it.
  std::uint64_t begin();
  void finish(std::uint64_t number);

  /// The last recording so far, 0: none.
  std::uint64_t last() const { return page().recorded.load(std::memory_order_acquire); }
  bool done(std::uint64_t number) const;
  /// Waits until it is done, its recorder has died, or `given_up` says so (asked ten times a second). A
  /// recorder of which nobody can see whether it lives is waited for.
  void await(std::uint64_t number, const std::function<bool()>& given_up);

 private:
  struct page {
    std::array<std::uint8_t, 16> key{};
    std::atomic<std::uint64_t> recorded{0}, finished{0};
    std::atomic<std::uint32_t> changed{0};  ///< a futex
    std::atomic<std::int32_t> recorder{0};  ///< process of the last recording, where it could lock its byte
  };

  ipc_event() = default;
  struct page& page() const {
    return *reinterpret_cast<struct page*>(mapping_.begin());
  }
  bool map();
  bool lock_own_byte();
  bool is_gone(std::int32_t process) const;

  std::atomic<bool> locked_{false};  ///< this process's byte, which says that it lives
  unique_fd file_;
  shared_mapping mapping_;
};

}  // namespace outboard::device::cpu
