// Which kinds of activities the program wants: for all contexts, and for single contexts, whose wish takes
// precedence. Any thread.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace outboard::frontend::cupti {

class wishes {
 public:
  static constexpr std::size_t kinds = CUPTI_ACTIVITY_KIND_COUNT;

  /// Whether any context wants the kind.
  bool has(CUpti_ActivityKind kind) const {
    return any_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  /// `context`: CUPTI's number; 0: not known, so what holds for all counts, or what any wants.
  bool has(CUpti_ActivityKind kind, std::uint32_t context) const {
    if (!has(kind)) return false;
    if (!of_contexts_.load(std::memory_order_relaxed)) return true;
    const std::lock_guard lock(mutex_);
    const auto found = single_.find({kind, context});
    return found != single_.end() ? found->second : of_all_[static_cast<std::size_t>(kind)] || context == 0;
  }

  /// Some context has a wish of its own.
  bool differ() const { return of_contexts_.load(std::memory_order_relaxed); }

  void set(CUpti_ActivityKind kind, bool on) {
    const std::lock_guard lock(mutex_);
    of_all_[static_cast<std::size_t>(kind)] = on;
    refresh(kind);
  }
  void set(CUpti_ActivityKind kind, std::uint32_t context, bool on) {
    const std::lock_guard lock(mutex_);
    single_[{kind, context}] = on;
    of_contexts_ = true;
    refresh(kind);
  }
  /// No context has a wish of its own.
  void forget_contexts() {
    const std::lock_guard lock(mutex_);
    single_.clear();
    of_contexts_ = false;
    for (std::size_t kind = 0; kind < kinds; ++kind) refresh(static_cast<CUpti_ActivityKind>(kind));
  }

 private:
  /// With the lock.
  void refresh(CUpti_ActivityKind kind) {
    bool any = of_all_[static_cast<std::size_t>(kind)];
    for (const auto& [of, on] : single_) any = any || (of.first == kind && on);
    any_[static_cast<std::size_t>(kind)] = any;
  }

  std::array<std::atomic<bool>, kinds> any_{};
  std::atomic<bool> of_contexts_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::array<bool, kinds> of_all_{};
  std::map<std::pair<CUpti_ActivityKind, std::uint32_t>, bool> single_;
};

}  // namespace outboard::frontend::cupti
