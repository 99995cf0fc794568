#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backend/nvml/shield.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

/// Short, because a long answer would hold up the client's other threads. The client library asks again.
constexpr unsigned longest_wait_ms = 50;

template <auto Entry, class Handle>
nvmlReturn_t create(Handle* made) {
  visitor& own = current_visitor();
  auto* const real = own.real().*Entry;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  if (own.is_full(kind_of<Handle>)) return NVML_ERROR_MEMORY;
  return real(made);
}

template <auto Entry, class Handle>
nvmlReturn_t destroy(Handle gone) {
  auto* const real = current_visitor().real().*Entry;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  const nvmlReturn_t code = real(gone);
  if (code == NVML_SUCCESS) current_visitor().forget(kind_of<Handle>, gone);
  return code;
}

template <auto Entry, class Data>
nvmlReturn_t wait(nvmlEventSet_t set, Data* data, unsigned milliseconds) {
  auto* const real = current_visitor().real().*Entry;
  return real ? real(set, data, std::min(milliseconds, longest_wait_ms)) : NVML_ERROR_NOT_SUPPORTED;
}

/// Some structs contain how long the driver is to wait.
template <class Ask>
nvmlReturn_t wait_briefly(unsigned& milliseconds, Ask&& ask) {
  const unsigned told = std::exchange(milliseconds, std::min(milliseconds, longest_wait_ms));
  const nvmlReturn_t code = ask();
  milliseconds = told;
  return code;
}

nvmlReturn_t wait_v3(nvmlEventSet_t set, nvmlEventSetWait_v3_t* params) {
  auto* const real = current_visitor().real().nvmlEventSetWait_v3;
  if (!real) return current_visitor().absent();
  return wait_briefly(params->timeoutMs, [&] { return real(set, params); });
}

/// Samples are objects of the server. Handles in the question have been turned into them, or into null.
nvmlReturn_t gpm_metrics(nvmlGpmMetricsGet_t* get) {
  auto* const real = current_visitor().real().nvmlGpmMetricsGet;
  if (!real) return current_visitor().absent();
  if (!get->sample1 || !get->sample2) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned asked = get->numMetrics;
  const nvmlReturn_t code = real(get);
  get->numMetrics = asked;  // the answer has as many as the question
  return code;
}

/// Checks a request about system events before a driver sees it.
template <class Request>
nvmlReturn_t check_request(const Request& request, unsigned number) {
  if (request.version != version_of<Request>(number)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return request.set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t create_system_set(nvmlSystemEventSetCreateRequest_v1_t* request) {
  visitor& own = current_visitor();
  if (!own.real().nvmlSystemEventSetCreate) return own.absent();
  if (own.is_full(handle_kind::system_event_set)) return NVML_ERROR_MEMORY;
  request->set = nullptr;
  if (request->version != version_of<nvmlSystemEventSetCreateRequest_v1_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return own.events().create(own.real(), request->set);
}

nvmlReturn_t free_system_set(nvmlSystemEventSetFreeRequest_v1_t* request) {
  visitor& own = current_visitor();
  if (!own.real().nvmlSystemEventSetFree) return own.absent();
  if (const nvmlReturn_t wrong = check_request(*request, 1); wrong != NVML_SUCCESS) return wrong;
  own.events().free(request->set);
  own.forget(handle_kind::system_event_set, request->set);
  return NVML_SUCCESS;
}

nvmlReturn_t register_system_events(nvmlSystemRegisterEventRequest_v1_t* request) {
  visitor& own = current_visitor();
  if (!own.real().nvmlSystemRegisterEvents) return own.absent();
  const nvmlReturn_t wrong = check_request(*request, 1);
  return wrong != NVML_SUCCESS ? wrong : own.events().watch(own.real(), request->set, request->eventTypes);
}

/// Leaves out events of boards that are not lent. Never waits, because the client library asks again.
nvmlReturn_t wait_for_system(nvmlSystemEventSetWaitRequest_v1_t* request) {
  visitor& own = current_visitor();
  if (!own.real().nvmlSystemEventSetWait) return own.absent();
  if (const nvmlReturn_t wrong = check_request(*request, 1); wrong != NVML_SUCCESS) return wrong;
  std::vector<nvmlSystemEventData_v1_t> events;
  const std::size_t room = request->data ? request->dataSize : 0;
  const nvmlReturn_t code = own.events().take(own.real(), request->set, room, events);
  std::erase_if(events, [](const nvmlSystemEventData_v1_t& e) { return !is_lent_board(e.gpuId); });
  std::ranges::copy(events, request->data);
  std::fill(request->data + events.size(), request->data + room, nvmlSystemEventData_v1_t{});
  request->numEvent = static_cast<unsigned>(events.size());
  return code == NVML_SUCCESS && events.empty() ? NVML_ERROR_TIMEOUT : code;
}

/// Registers for events of boards that are lent, and of no others.
nvmlReturn_t register_operational(nvmlEventSet_t set, const nvmlGpuOperationalEventConfig_v1_t* config) {
  visitor& own = current_visitor();
  auto* const real = own.real().nvmlEventSetRegisterGpuOperationalEvents_v1;
  if (!real) return own.absent();
  nvmlDevice_t device = nullptr;
  const std::string uuid(config->uuid, ::strnlen(config->uuid, sizeof config->uuid));
  if (shielded().nvmlDeviceGetHandleByUUID(uuid.c_str(), &device) != NVML_SUCCESS)
    return NVML_ERROR_INVALID_ARGUMENT;
  return real(set, config);
}

}  // namespace

void shield_objects(function_table& t) {
  t.nvmlEventSetCreate = create<&function_table::nvmlEventSetCreate>;
  t.nvmlEventSetFree = destroy<&function_table::nvmlEventSetFree>;
  t.nvmlEventSetWait = wait<&function_table::nvmlEventSetWait>;
  t.nvmlEventSetWait_v2 = wait<&function_table::nvmlEventSetWait_v2>;
  t.nvmlEventSetWait_v3 = wait_v3;
  t.nvmlEventSetRegisterGpuOperationalEvents_v1 = register_operational;
  t.nvmlSystemEventSetCreate = create_system_set;
  t.nvmlSystemEventSetFree = free_system_set;
  t.nvmlSystemRegisterEvents = register_system_events;
  t.nvmlSystemEventSetWait = wait_for_system;
  t.nvmlGpmMetricsGet = gpm_metrics;
  t.nvmlGpmSampleAlloc = create<&function_table::nvmlGpmSampleAlloc>;
  t.nvmlGpmSampleFree = destroy<&function_table::nvmlGpmSampleFree>;
}

const function_table& shielded() {
  static const function_table table = [] {
    function_table t;
    shield_devices(t);
    shield_processes(t);
    shield_shape(t);
    shield_objects(t);
    return t;
  }();
  return table;
}

}  // namespace outboard::backend::nvml
