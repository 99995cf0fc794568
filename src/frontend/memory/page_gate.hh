// Pages of the program that it may not touch until we allow it, while we ourselves reach them all the time by
// a second view of the same memory. A thread that touches a closed page sleeps in the kernel until the page
// is opened (userfaultfd: no signal, no handler, whatever signals the thread blocks); next_touch() reports
// the page. Owned by managed_blocks; any thread, but a range is closed, opened and unmapped by one thread at
// a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fd.hh"

namespace outboard::frontend {

class page_gate {
 public:
  /// Whether this process can have one. The system is asked once; costs no descriptor afterwards.
  static bool possible();
  /// To be called first; false: the gate cannot be had (now).
  bool open();
  bool is_open() const { return faults_.get() >= 0; }
  /// What the views show, each byte at its address.
  int file() const { return memory_.get(); }
  /// System calls that touch a closed page wait as well; else they fail with EFAULT.
  bool holds_system_calls() const { return in_kernel_too_; }

  /// Puts zero pages at whole pages that this process has claimed, open. Returns our own view of them;
  /// nullptr: no memory.
  std::byte* map(std::uint64_t address, std::uint64_t size);
  /// The pages stay mapped at `address`, open, until something else is put there. `alone`: nothing else is
  /// in them, so their contents go.
  void unmap(std::uint64_t address, std::uint64_t size, std::byte* view, bool alone);

  /// After the return no thread of the program can reach the pages. False: they are still open.
  bool close(std::uint64_t address, std::uint64_t size);
  /// Threads that sleep there go on.
  void reopen(std::uint64_t address, std::uint64_t size);

  /// An address in a page for which a thread waits; nothing when the time is over or wake() was called. Each
  /// touch is reported once; one thread at a time.
  std::optional<std::uint64_t> next_touch(std::optional<std::chrono::nanoseconds> patience);
  void wake();

 private:
  unique_fd faults_, memory_, wakes_;
  bool in_kernel_too_ = false;
};

}  // namespace outboard::frontend
