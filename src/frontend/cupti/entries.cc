#include "frontend/cupti/entries.hh"

#include "api/cuda/cupti_headers.hh"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/cupti/names.hh"
#include "base/log.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cupti/tool.hh"
#include "frontend/lane.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cupti {
namespace {

tool_of_program& tool() { return tool_of_program::instance(); }

thread_local constinit CUptiResult last_error = CUPTI_SUCCESS;

/// What a function answers; cuptiGetLastError tells it again.
CUptiResult answer(CUptiResult code) {
  if (code != CUPTI_SUCCESS) last_error = code;
  return code;
}

/// Takes effect where the numbers of what is wanted have changed.
CUptiResult changed(CUptiResult code) {
  tool().refresh();
  return answer(code);
}

namespace ends {

// --- versions, times, errors

template <int major>
CUptiResult cuptiGetVersion(std::uint32_t* version) {
  if (!version) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  // Of CUDA 12's versions 12.8, whose records come (record_buffers::size_of).
  *version = major < 13 ? 26 : CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  if (!timestamp) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *timestamp = tool().activities.now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (!text) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  const char* const name = api::cupti::result_name(result);
  if (!name) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *text = name;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return ends::cuptiGetResultString(result, text);
}

CUptiResult cuptiGetLastError() { return std::exchange(last_error, CUPTI_SUCCESS); }

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
    return answer(CUPTI_ERROR_INVALID_PARAMETER);
  tool().activities.use_thread_ids(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (!type) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *type = tool().activities.system_threads() ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                             : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize() {
  tool().activities.disable_all();
  (void)tool().callbacks.unsubscribe(reinterpret_cast<CUpti_SubscriberHandle>(&tool().callbacks));
  return changed(CUPTI_SUCCESS);
}

// --- activities

template <int major>
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                           CUpti_BuffersCallbackCompleteFunc take) {
  if (!give || !take) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  tool().activities.use_buffers(major, give, take);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  if (!clock) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  tool().activities.use_clock(clock);
  return CUPTI_SUCCESS;
}

/// In CUDA 12 recorded events come with what waits, and nobody may ask for them alone (12.8, observed).
template <int major, class Change>
CUptiResult change_kind(CUpti_ActivityKind kind, Change&& change) {
  if constexpr (major < 13) {
    if (kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT) return answer(CUPTI_ERROR_INVALID_KIND);
    if (kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) (void)change(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  }
  return changed(change(kind));
}
template <int major>
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return change_kind<major>(kind, [](CUpti_ActivityKind k) { return tool().activities.enable(k); });
}
template <int major>
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return change_kind<major>(kind, [](CUpti_ActivityKind k) { return tool().activities.disable(k); });
}

template <int major>
CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  if (!context) return answer(CUPTI_ERROR_INVALID_CONTEXT);
  const std::uint32_t number = tool().numbers.of_context(reinterpret_cast<std::uint64_t>(context));
  return change_kind<major>(kind, [&](CUpti_ActivityKind k) { return tool().activities.enable(k, number); });
}
template <int major>
CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  if (!context) return answer(CUPTI_ERROR_INVALID_CONTEXT);
  const std::uint32_t number = tool().numbers.of_context(reinterpret_cast<std::uint64_t>(context));
  return change_kind<major>(kind, [&](CUpti_ActivityKind k) { return tool().activities.disable(k, number); });
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId callback, std::uint8_t on) {
  return changed(tool().activities.enable_call(false, callback, on != 0));
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId callback, std::uint8_t on) {
  return changed(tool().activities.enable_call(true, callback, on != 0));
}

CUptiResult cuptiActivityFlushAll(std::uint32_t how) {
  tool().activities.flush((how & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlush(CUcontext, std::uint32_t, std::uint32_t how) {
  return ends::cuptiActivityFlushAll(how);
}
CUptiResult cuptiActivityFlushPeriod(std::uint32_t milliseconds) {
  tool().activities.use_period(std::chrono::milliseconds(milliseconds));
  return CUPTI_SUCCESS;
}

template <int major>
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  const CUptiResult code = record_buffers::next(major, buffer, valid, record);
  return code == CUPTI_ERROR_MAX_LIMIT_REACHED ? code : answer(code);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  if (!dropped) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *dropped = tool().activities.take_dropped();
  return CUPTI_SUCCESS;
}

/// Sizes of CUPTI's own pools, which are the server's: what a program sets it reads again.
class attributes {
 public:
  CUptiResult get(CUpti_ActivityAttribute which, std::size_t* size, void* value) {
    if (!size || !value) return CUPTI_ERROR_INVALID_PARAMETER;
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(which);
    if (found == kept_.end()) return CUPTI_ERROR_NOT_SUPPORTED;
    if (*size < found->second.size) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    *size = found->second.size;
    std::memcpy(value, found->second.bytes.data(), found->second.size);
    return CUPTI_SUCCESS;
  }
  CUptiResult set(CUpti_ActivityAttribute which, const std::size_t* size, const void* value) {
    if (!size || !value) return CUPTI_ERROR_INVALID_PARAMETER;
    if (*size == 0 || *size > sizeof(std::size_t)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    if (which < 0 || which > CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS)
      return CUPTI_ERROR_INVALID_PARAMETER;
    const std::lock_guard lock(mutex_);
    kept& k = kept_[which];
    k.size = *size;
    std::memcpy(k.bytes.data(), value, *size);
    return CUPTI_SUCCESS;
  }

 private:
  struct kept {
    std::size_t size = 0;
    std::array<std::byte, sizeof(std::size_t)> bytes{};
  };
  std::mutex mutex_;
  std::map<int, kept> kept_;
};
attributes& kept_attributes() {
  static attributes* const one = new attributes;
  return *one;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute which, std::size_t* size, void* value) {
  return answer(kept_attributes().get(which, size, value));
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute which, std::size_t* size, void* value) {
  return answer(kept_attributes().set(which, size, value));
}

bool is_external(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (!is_external(kind)) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  this_lane().tool.external.emplace_back(kind, id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  if (!is_external(kind)) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  auto& pushed = this_lane().tool.external;
  const auto of_kind = [&](const auto& one) { return one.first == static_cast<std::uint32_t>(kind); };
  const auto found = std::find_if(pushed.rbegin(), pushed.rend(), of_kind);
  if (found == pushed.rend()) return answer(CUPTI_ERROR_QUEUE_EMPTY);
  if (last) *last = found->second;
  pushed.erase(std::next(found).base());
  return CUPTI_SUCCESS;
}

/// Of what is not there: to leave it off is done, to switch it on is refused.
CUptiResult only_off(std::uint8_t on) { return on ? answer(CUPTI_ERROR_NOT_SUPPORTED) : CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableLatencyTimestamps(std::uint8_t on) { return only_off(on); }
CUptiResult cuptiActivityEnableLaunchAttributes(std::uint8_t on) { return only_off(on); }
CUptiResult cuptiActivityEnableHWTrace(std::uint8_t on) { return only_off(on); }
CUptiResult cuptiActivityEnableDeviceGraph(std::uint8_t on) { return only_off(on); }
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t on) { return only_off(on); }
CUptiResult cuptiActivityEnableAllocationSource(std::uint8_t on) { return only_off(on); }
// All there are come anyway.
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t) { return CUPTI_SUCCESS; }

// --- numbers of contexts, streams and graphs

CUptiResult cuptiGetContextId(CUcontext context, std::uint32_t* number) {
  if (!number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  if (!context) return answer(CUPTI_ERROR_INVALID_CONTEXT);
  *number = tool().numbers.of_context(reinterpret_cast<std::uint64_t>(context));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, std::uint32_t* number) {
  if (!number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  CUdevice device = 0;
  if (cuda::ends::cuCtxGetDevice_v2(&device, context) != CUDA_SUCCESS)
    return answer(CUPTI_ERROR_INVALID_CONTEXT);
  *number = static_cast<std::uint32_t>(device);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, std::uint8_t per_thread,
                               std::uint32_t* number) {
  if (!number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  const std::uint64_t handle =
      context ? reinterpret_cast<std::uint64_t>(context) : this_lane().context_handle();
  if (handle == 0) return answer(CUPTI_ERROR_INVALID_CONTEXT);
  *number = tool().numbers.of_stream(tool().numbers.of_context(handle), stream, per_thread != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, std::uint32_t* number) {
  return ends::cuptiGetStreamIdEx(context, stream, 0, number);
}

CUptiResult cuptiGetGraphId(CUgraph graph, std::uint32_t* number) {
  if (!graph || !number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *number = tool().numbers.of_graph(graph);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* number) {
  if (!node || !number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *number = tool().numbers.of_node(node);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphExecId(CUgraphExec graph, std::uint32_t* number) {
  if (!graph || !number) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *number = tool().numbers.of_graph(graph);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceSupported(CUdevice device, int* supported) {
  if (!supported) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  const auto& devices = process::instance().facts().devices;
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size())
    return answer(CUPTI_ERROR_INVALID_DEVICE);
  *supported = process::instance().records_work();
  return CUPTI_SUCCESS;
}

// --- callbacks

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc function, void* data) {
  return answer(tool().callbacks.subscribe(out, function, data));
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* out, CUpti_CallbackFunc function, void* data,
                              CUpti_SubscriberParams* about) {
  if (about && about->structSize == 0) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  return ends::cuptiSubscribe(out, function, data);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return changed(tool().callbacks.unsubscribe(subscriber));
}

CUptiResult cuptiEnableCallback(std::uint32_t on, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId callback) {
  return changed(tool().callbacks.enable(on != 0, subscriber, domain, callback));
}

CUptiResult cuptiEnableDomain(std::uint32_t on, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  return changed(tool().callbacks.enable_domain(on != 0, subscriber, domain));
}

CUptiResult cuptiEnableAllDomains(std::uint32_t on, CUpti_SubscriberHandle subscriber) {
  const CUptiResult driver = ends::cuptiEnableDomain(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  return driver != CUPTI_SUCCESS ? driver
                                 : ends::cuptiEnableDomain(on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
}

CUptiResult cuptiGetCallbackState(std::uint32_t* on, CUpti_SubscriberHandle subscriber,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId callback) {
  return answer(tool().callbacks.state(on, subscriber, domain, callback));
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t callback, const char** name) {
  // NVIDIA's has no names of NVTX's functions either (CUDA 13.0).
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (!name || (!runtime && domain != CUPTI_CB_DOMAIN_DRIVER_API))
    return answer(CUPTI_ERROR_INVALID_PARAMETER);
  const auto which = runtime ? api::cupti::domain::runtime : api::cupti::domain::driver;
  const char* const known = api::cupti::callback_name(which, callback);
  if (!known) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *name = known;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(std::size_t* count, CUpti_DomainTable* table) {
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                           CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
  if (!count || !table) return answer(CUPTI_ERROR_INVALID_PARAMETER);
  *count = std::size(domains);
  *table = domains;
  return CUPTI_SUCCESS;
}

}  // namespace ends

#define OURS(name)                                                            \
  static_assert(std::is_same_v<decltype(ends::name), decltype(::name)>, #name \
                " is not as CUPTI declares "                                  \
                "it");
#define OURS_BY_VERSION(name)                                               \
  static_assert(std::is_same_v<decltype(ends::name<13>), decltype(::name)>, \
                #name " is not as CUPTI declares it");
#define REFUSED(name)
#include "api/cupti/functions.def"
#undef OURS

struct entry {
  std::string_view name;
  int major;  ///< of CUDA; 0: of all
  void* address;
};

}  // namespace

void* find_entry(const char* name, int major) {
  static const std::array entries{
#define OURS(name) entry{#name, 0, reinterpret_cast<void*>(&ends::name)},
#define OURS_BY_VERSION(name)                                 \
  entry{#name, 12, reinterpret_cast<void*>(&ends::name<12>)}, \
      entry{#name, 13, reinterpret_cast<void*>(&ends::name<13>)},
#include "api/cupti/functions.def"
#undef OURS
#undef REFUSED
  };
  const auto is_it = [&](const entry& one) {
    return name == one.name && (one.major == 0 || one.major == major);
  };
  const auto found = std::ranges::find_if(entries, is_it);
  return found != entries.end() ? found->address : nullptr;
}

}  // namespace outboard::frontend::cupti
