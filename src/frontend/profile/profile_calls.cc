#include "frontend/profile/profile_calls.hh"

#include <unistd.h>

#include <algorithm>

namespace outboard::frontend {

struct profiled_lane {
  const std::int32_t thread = ::gettid();
  std::mutex mutex;  // guards what follows: its thread notes, another takes five times a second
  bool ended = false;
  std::vector<profile_events::call> calls;

  std::vector<profile_events::call> taken;  // of take() alone; keeps the room of the other one
};

profile_calls::profile_calls() = default;
profile_calls::~profile_calls() = default;

void profile_calls::note(lane& own, std::string_view name, answered how, std::int64_t begin,
                         std::int64_t end) {
  profiled_lane& list = of(own);
  const std::lock_guard lock(list.mutex);
  list.calls.push_back({name, how, list.thread, begin, end, own.call});
}

void profile_calls::end(lane& own) {
  if (!own.profiled) return;
  const std::lock_guard lock(own.profiled->mutex);
  own.profiled->ended = true;
}

std::vector<profile_events::call> profile_calls::take() {
  std::vector<profile_events::call> all;
  const std::lock_guard lock(mutex_);
  std::erase_if(lanes_, [&](const std::unique_ptr<profiled_lane>& list) {
    bool ended = false;
    {
      const std::lock_guard noting(list->mutex);
      list->taken.swap(list->calls);
      ended = list->ended;
    }
    all.insert(all.end(), list->taken.begin(), list->taken.end());
    list->taken.clear();
    return ended;
  });
  std::ranges::sort(all, {}, &profile_events::call::begin);
  return all;
}

std::size_t profile_calls::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_.size();
}

profiled_lane& profile_calls::of(lane& own) {
  if (own.profiled) return *own.profiled;
  auto made = std::make_unique<profiled_lane>();
  own.profiled = made.get();
  const std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(made));
  return *own.profiled;
}

}  // namespace outboard::frontend
