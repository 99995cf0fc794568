// The driver's log of failed calls (chapter logs): each API call that gives the program an error is a line,
// as drivers since CUDA 12.9 write them. The oldest lines go when the log is full. Process-wide; any thread.
// A call that succeeds costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {

class error_log {
 public:
  static error_log& instance();

  /// A call of the program's has failed.
  void note(std::string_view function, CUresult code);

  /// 0: none.
  std::uintptr_t add(CUlogsCallback callback, void* data);
  bool remove(std::uintptr_t handle);
  /// The number of the next line.
  std::uint32_t end() const;

  /// The lines from `from` on (those that were lost are said to be) as text; `from` becomes the end.
  std::string text(std::uint32_t& from) const;
  /// That text, no longer than `room` with its NUL: the newest lines. Empty although there are lines: not
  /// even one fits.
  std::string text_within(std::uint32_t& from, std::size_t room) const;

 private:
  struct listener {
    CUlogsCallback call = nullptr;
    void* data = nullptr;
  };
  static constexpr std::size_t most_bytes = 25600;  ///< as the manual says of the driver's

  mutable std::mutex mutex_;  // guards all below; not held while a program's function runs
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
  std::uint32_t end_ = 0;
  std::map<std::uintptr_t, listener> listeners_;
  std::uintptr_t last_handle_ = 0;
};

}  // namespace outboard::frontend::cuda
