// Events of the system (boards that come and go) for all visitors. A driver lets a process register for them
// once and never again (580.159.04: a second set gets NVML_ERROR_UNKNOWN), so the helper has one set of the
// driver's, and each set of a visitor gets its copies. One a helper; any thread.
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
  /// What came for the set, `most` at once, without waiting: NVML_ERROR_TIMEOUT where nothing did.
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
