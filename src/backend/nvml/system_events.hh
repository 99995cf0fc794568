// Events of the system (boards that come and go) for all visitors. A driver lets a process register for them
// only once (with 580.159.04 a second set gets NVML_ERROR_UNKNOWN), so the helper has one set of the
// driver's, and each visitor's set gets copies of its events. The helper owns one object; any thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/nvml/table.hh"

namespace outboard::backend::nvml {

class system_events {
 public:
  using table = api::nvml::function_table;
  using event = api::nvml::nvmlSystemEventData_v1_t;
  using event_set = api::nvml::nvmlSystemEventSet_t;

  api::nvml::nvmlReturn_t create(const table& driver, event_set& made);
  /// The set gets events of these types from now on.
  api::nvml::nvmlReturn_t watch(const table& driver, event_set set, unsigned long long types);
  /// Takes up to `most` events of the set, without waiting. NVML_ERROR_TIMEOUT: there is none.
  api::nvml::nvmlReturn_t take(const table& driver, event_set set, std::size_t most, std::vector<event>& out);
  void free(event_set set);

 private:
  struct own_set {
    unsigned long long types = 0;
    std::deque<event> waiting;
  };
  own_set* find(event_set set);
  api::nvml::nvmlReturn_t collect(const table& driver);

  std::mutex mutex_;
  event_set real_ = nullptr;
  unsigned long long registered_ = 0;
  std::map<event_set, std::unique_ptr<own_set>> sets_;
};

}  // namespace outboard::backend::nvml
