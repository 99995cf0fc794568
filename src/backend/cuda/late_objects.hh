// Objects made by requests that had given up the turn: they wait here for the next request, which enters them
// before it does anything else. So whoever names one once the client has heard of it finds it. Belongs to a
// session; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/objects.hh"

namespace outboard::backend {

struct late_object {
  std::uint64_t id = 0;
  void* native = nullptr;
  record made_by;
  std::shared_ptr<void> extra;
};

class late_objects {
 public:
  void add(late_object made) {
    const std::lock_guard lock(mutex_);
    made_.push_back(std::move(made));
    any_.store(true, std::memory_order_release);  // partner: any()
  }
  bool any() const { return any_.load(std::memory_order_acquire); }
  /// With the turn. False: a handle is in use already.
  [[nodiscard]] bool enter_into(object_tables& objects) {
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    bool free = true;
    for (late_object& made : std::exchange(made_, {})) {
      if (!objects.create(made.id, made.native, std::move(made.made_by), std::move(made.extra))) free = false;
    }
    return free;
  }

 private:
  std::mutex mutex_;
  std::vector<late_object> made_;
  std::atomic<bool> any_{false};
};

}  // namespace outboard::backend
