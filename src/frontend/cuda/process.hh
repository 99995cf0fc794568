// The front-end's state in the program's process, put together of its parts: each says what it is in a header
// of its own. One object, made by the shim's one init and never destroyed. Code that runs for a call reaches
// it by the call's lane (own.state()); instance() is for the C ABI's hooks, which have no lane. Any thread.
#pragma once

#include <atomic>

#include "frontend/cuda/activity.hh"
#include "frontend/cuda/device_contexts.hh"
#include "frontend/cuda/handle_tables.hh"
#include "frontend/cuda/memory/memory_books.hh"
#include "frontend/cuda/server_connection.hh"
#include "frontend/host_functions.hh"
#include "frontend/lane.hh"

namespace outboard::frontend {

class process {
 public:
  /// Never destroyed: libraries call the driver from their destructors, in any order (design section 5.4).
  static process& instance() {
    process* const known = the_one_.load(std::memory_order_acquire);  // partner: make()
    return known ? *known : make();
  }

  handle_tables handles;
  device_contexts devices{handles};
  memory_books memory;
  host_functions functions;
  activity work;
  server_connection connection{*this};

 private:
  process() = default;
  ~process() = default;
  static process& make();

  static inline std::atomic<process*> the_one_{nullptr};
};

inline process& lane::state() const { return state_ ? *state_ : *(state_ = &process::instance()); }

}  // namespace outboard::frontend
