#include "backend/nvml/system_events.hh"

#include <algorithm>
#include <array>
#include <span>

namespace outboard::backend::nvml {

using namespace api::nvml;

namespace {

/// All types of nvml.h, because different visitors want different ones.
constexpr unsigned long long known_types = 3;
/// The most events that a set keeps until they are asked for; older ones are lost.
constexpr std::size_t most_waiting = 256;

}  // namespace

system_events::own_set* system_events::find(event_set set) {
  const auto found = sets_.find(set);
  return found == sets_.end() ? nullptr : found->second.get();
}

nvmlReturn_t system_events::create(const table& driver, event_set& made) {
  const std::lock_guard lock(mutex_);
  if (!real_) {
    nvmlSystemEventSetCreateRequest_v1_t request{version_of<nvmlSystemEventSetCreateRequest_v1_t>(1),
                                                 nullptr};
    if (const nvmlReturn_t code = driver.nvmlSystemEventSetCreate(&request); code != NVML_SUCCESS)
      return code;
    real_ = request.set;
  }
  auto fresh = std::make_unique<own_set>();
  made = reinterpret_cast<event_set>(fresh.get());
  sets_.emplace(made, std::move(fresh));
  return NVML_SUCCESS;
}

nvmlReturn_t system_events::watch(const table& driver, event_set set, unsigned long long types) {
  const std::lock_guard lock(mutex_);
  own_set* const own = find(set);
  if (!own) return NVML_ERROR_INVALID_ARGUMENT;
  if ((types & ~registered_) != 0) {
    nvmlSystemRegisterEventRequest_v1_t request{version_of<nvmlSystemRegisterEventRequest_v1_t>(1),
                                                types | known_types, real_};
    if (const nvmlReturn_t code = driver.nvmlSystemRegisterEvents(&request); code != NVML_SUCCESS)
      return code;
    registered_ |= types | known_types;
  }
  own->types |= types;
  return NVML_SUCCESS;
}

/// Gives the driver's events to all sets that watch for them.
nvmlReturn_t system_events::collect(const table& driver) {
  std::array<event, 16> came{};
  nvmlSystemEventSetWaitRequest_v1_t request{
      version_of<nvmlSystemEventSetWaitRequest_v1_t>(1), 0, real_, came.data(), came.size(), 0};
  if (const nvmlReturn_t code = driver.nvmlSystemEventSetWait(&request); code != NVML_SUCCESS) return code;
  const std::size_t count = std::min<std::size_t>(request.numEvent, came.size());
  for (const auto& [set, own] : sets_) {
    for (const event& e : std::span(came).first(count)) {
      if ((own->types & e.eventType) == 0) continue;
      own->waiting.push_back(e);
      if (own->waiting.size() > most_waiting) own->waiting.pop_front();
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t system_events::take(const table& driver, event_set set, std::size_t most,
                                 std::vector<event>& out) {
  const std::lock_guard lock(mutex_);
  own_set* const own = find(set);
  if (!own) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t code = collect(driver);
  for (; out.size() < most && !own->waiting.empty(); own->waiting.pop_front())
    out.push_back(own->waiting.front());
  if (!out.empty()) return NVML_SUCCESS;
  return code == NVML_SUCCESS ? NVML_ERROR_TIMEOUT : code;
}

void system_events::free(event_set set) {
  const std::lock_guard lock(mutex_);
  sets_.erase(set);
}

}  // namespace outboard::backend::nvml
