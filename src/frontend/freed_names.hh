// Handles and addresses of the window that end with a request. They are free again when this object is
// destroyed, which must be after that request: a second thread that was given one earlier could reach the
// server before it, and the server would refuse a name that is in use.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "frontend/process.hh"

namespace outboard::frontend {

/// Owned by the function that sends the request; one thread.
class freed_names {
 public:
  freed_names() = default;
  freed_names(const freed_names&) = delete;
  freed_names& operator=(const freed_names&) = delete;
  ~freed_names() {
    for (const auto& [kind, handle] : handles_) process::instance().objects().handles(kind).release(handle);
    for (const range& r : ranges_) r.slot->give_back(r.base, r.size);
  }

  /// Until the end of this object the table still finds the handle.
  void add(api::handle_kind kind, std::uint64_t handle) { handles_.emplace_back(kind, handle); }
  /// Null: they are not the window's, and nothing is to be done.
  void add(slot_addresses* slot, std::uint64_t base, std::uint64_t size) {
    if (slot) ranges_.push_back({slot, base, size});
  }

 private:
  struct range {
    slot_addresses* slot = nullptr;
    std::uint64_t base = 0, size = 0;
  };
  std::vector<std::pair<api::handle_kind, std::uint64_t>> handles_;
  std::vector<range> ranges_;
};

}  // namespace outboard::frontend
