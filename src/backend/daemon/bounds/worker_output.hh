// Passes on what a worker and the programs that it starts write to their standard error. They have a pipe of
// their own, because a stranger's program may have taken the worker over: what it does to the pipe (fill it,
// make it non-blocking) does not reach the daemon's own standard error, and only so much of it is passed on.
// Owned by the worker's entry; the daemon's one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/daemon/bounds/bucket.hh"
#include "backend/daemon/event_loop.hh"
#include "base/fd.hh"

namespace outboard::backend {

class worker_output {
 public:
  /// `from` is the pipe's end to read from. `loop` outlives this object.
  worker_output(event_loop& loop, unique_fd from);
  /// Passes on what is left.
  ~worker_output();
  worker_output(const worker_output&) = delete;
  worker_output& operator=(const worker_output&) = delete;

  status start();
  /// Passes on what is there.
  void read_all();

 private:
  status watch();
  void on_readable();
  bool read_some();
  void pass_on(std::string_view text);
  void stop();

  event_loop& loop_;
  unique_fd from_;
  bucket bytes_;
  std::string begun_;  ///< a line without its end
  std::uint64_t left_out_ = 0;
  event_loop::id watch_ = 0, timer_ = 0;
};

}  // namespace outboard::backend
