// Handles that end with a request. Their ids are free again when this object is destroyed, which must be
// after that request: a second thread that was given such an id earlier could reach the server before it, and
// the server would refuse an id that is in use.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "frontend/process.hh"

namespace outboard::frontend {

/// Owned by the function that sends the request; one thread.
class dead_handles {
 public:
  dead_handles() = default;
  dead_handles(const dead_handles&) = delete;
  dead_handles& operator=(const dead_handles&) = delete;
  ~dead_handles() {
    for (const auto& [kind, handle] : handles_) process::instance().objects().handles(kind).release(handle);
  }

  /// Until the end of this object the table still finds the handle.
  void add(api::handle_kind kind, std::uint64_t handle) { handles_.emplace_back(kind, handle); }

 private:
  std::vector<std::pair<api::handle_kind, std::uint64_t>> handles_;
};

}  // namespace outboard::frontend
