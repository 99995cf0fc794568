// Errors after which a context is lost until it is reset: every later call in it gives the same code. Which
// codes these are, and of which contexts the client has heard. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "api/cuda/headers.hh"

namespace outboard::backend {

bool is_sticky(CUresult code);

/// What the client was told.
class sticky_errors {
 public:
  bool knows(std::uint64_t context) const {
    const std::lock_guard lock(mutex_);
    return told_.contains(context);
  }
  /// False: it was told before.
  [[nodiscard]] bool note(std::uint64_t context, CUresult code) {
    const std::lock_guard lock(mutex_);
    return told_.emplace(context, code).second;
  }
  /// The context lives anew (reset).
  void forget(std::uint64_t context) {
    const std::lock_guard lock(mutex_);
    told_.erase(context);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, CUresult> told_;
};

}  // namespace outboard::backend
