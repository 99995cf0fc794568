// The part of an interprocess event that processes share: the number of recordings and how many of them are
// done, in a page of a sealed memory file. The handle of such an event names the process and descriptor of
// its maker. A worker reaches nothing of another one, so the descriptor travels with the handle (broker.hh).
// Any thread.
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
  /// nullptr: no such event exists. `own`: this process made it.
  static std::shared_ptr<ipc_event> open(const CUipcEventHandle& handle, bool& own);

  CUipcEventHandle handle() const;

  /// As device::device has them.
  static int descriptor_of(const CUipcEventHandle& handle);
  static CUipcEventHandle with_descriptor(const CUipcEventHandle& handle, int descriptor);

  /// Begins a recording; finish() with the returned number says that the stream has reached it.
  std::uint64_t begin();
  void finish(std::uint64_t number);

  /// The number of the last recording; 0: none.
  std::uint64_t last() const { return page().recorded.load(std::memory_order_acquire); }
  bool done(std::uint64_t number) const;
  /// Waits until the recording is done, its process has died, or `given_up` returns true (called ten times a
  /// second).
  void await(std::uint64_t number, const std::function<bool()>& given_up);

 private:
  struct page {
    std::array<std::uint8_t, 16> key{};
    std::atomic<std::uint64_t> recorded{0}, finished{0};
    std::atomic<std::uint32_t> changed{0};  ///< a futex
    std::atomic<std::int32_t> recorder{0};  ///< process of the last recording
  };

  ipc_event() = default;
  struct page& page() const {
    return *reinterpret_cast<struct page*>(mapping_.begin());
  }
  bool map();
  bool is_gone(std::int32_t process) const;

  unique_fd file_;
  unique_fd presence_;  ///< the same file, opened for this process alone, which holds locks by it
  shared_mapping mapping_;
};

}  // namespace outboard::device::cpu
