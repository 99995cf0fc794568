#include "frontend/cupti/callbacks.hh"

#include <algorithm>
#include <utility>

#include "api/cupti/names.hh"
#include "base/log.hh"

namespace outboard::frontend::cupti {
namespace {

/// The domains of which something is told.
constexpr std::array told_domains{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                  CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                  CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
static_assert(told_domains.size() + 1 == CUPTI_CB_DOMAIN_SIZE, "a domain that nobody tells of");

/// What comes without anybody looking at calls of the driver.
constexpr std::array unwatched_domains{CUPTI_CB_DOMAIN_NVTX, CUPTI_CB_DOMAIN_STATE};

}  // namespace

bool callbacks::is_ours(CUpti_SubscriberHandle subscriber) const {
  return subscribed_ && reinterpret_cast<const void*>(subscriber) == this;
}

CUptiResult callbacks::subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc function, void* data) {
  if (!out) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(mutex_);
  if (subscribed_) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscribed_ = true;
  data_ = data;
  function_ = function;
  *out = reinterpret_cast<CUpti_SubscriberHandle>(this);
  return CUPTI_SUCCESS;
}

CUptiResult callbacks::unsubscribe(CUpti_SubscriberHandle subscriber) {
  const std::lock_guard lock(mutex_);
  if (!is_ours(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  subscribed_ = false;
  function_ = nullptr;
  for (const auto domain : told_domains)
    (void)set(false, domain, 1, static_cast<std::uint32_t>(flags_of(domain).size() - 1));
  return CUPTI_SUCCESS;
}

/// By the callback's number; none: there is no such domain.
std::span<const callbacks::flag> callbacks::flags_of(CUpti_CallbackDomain domain) const {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return wanted_[0];
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return wanted_[1];
    case CUPTI_CB_DOMAIN_RESOURCE:
      return resources_;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      return waits_;
    case CUPTI_CB_DOMAIN_STATE:
      return states_;
    case CUPTI_CB_DOMAIN_NVTX:
      return nvtx_;
    default:
      return {};
  }
}

std::span<callbacks::flag> callbacks::flags_of(CUpti_CallbackDomain domain) {
  const std::span<const flag> all = std::as_const(*this).flags_of(domain);
  return {const_cast<flag*>(all.data()), all.size()};
}

/// With the lock.
CUptiResult callbacks::set(bool on, CUpti_CallbackDomain domain, std::uint32_t first, std::uint32_t last) {
  const std::span<flag> flags = flags_of(domain);
  if (flags.empty()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (last >= flags.size())
    log::warn("callback ", last, " of CUPTI's domain ", static_cast<int>(domain),
              " is of a newer CUPTI than this one, ", CUPTI_API_VERSION,
              ": it returns CUPTI_ERROR_INVALID_PARAMETER");
  if (first == 0 || last >= flags.size()) return CUPTI_ERROR_INVALID_PARAMETER;
  for (std::uint32_t i = first; i <= last; ++i) flags[i] = on;
  refresh();
  return CUPTI_SUCCESS;
}

CUptiResult callbacks::enable(bool on, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                              std::uint32_t callback) {
  const std::lock_guard lock(mutex_);
  return is_ours(subscriber) ? set(on, domain, callback, callback) : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult callbacks::enable_domain(bool on, CUpti_SubscriberHandle subscriber,
                                     CUpti_CallbackDomain domain) {
  const std::lock_guard lock(mutex_);
  if (!is_ours(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::size_t count = flags_of(domain).size();
  return set(on, domain, 1, static_cast<std::uint32_t>(std::max<std::size_t>(count, 1) - 1));
}

CUptiResult callbacks::state(std::uint32_t* out, CUpti_SubscriberHandle subscriber,
                             CUpti_CallbackDomain domain, std::uint32_t callback) const {
  const std::lock_guard lock(mutex_);
  if (!out || !is_ours(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::span<const flag> flags = flags_of(domain);
  if (flags.empty()) return CUPTI_ERROR_INVALID_PARAMETER;
  *out = callback < flags.size() && flags[callback];
  return CUPTI_SUCCESS;
}

/// With the lock.
void callbacks::refresh() {
  const auto any_of = [this](CUpti_CallbackDomain domain) {
    return std::ranges::any_of(flags_of(domain), [](const flag& wanted) { return wanted.load(); });
  };
  any_ = std::ranges::any_of(told_domains, [&](CUpti_CallbackDomain domain) {
    return std::ranges::find(unwatched_domains, domain) == unwatched_domains.end() && any_of(domain);
  });
  nvtx_any_ = any_of(CUPTI_CB_DOMAIN_NVTX);
  const auto graphs =
      std::span(resources_)
          .subspan(CUPTI_CBID_RESOURCE_GRAPH_CREATED,
                   CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED - CUPTI_CBID_RESOURCE_GRAPH_CREATED + 1);
  graphs_any_ = std::ranges::any_of(graphs, [](const flag& wanted) { return wanted.load(); });
}

void callbacks::tell(CUpti_CallbackDomain domain, std::uint32_t event, const void* about) const {
  if (const CUpti_CallbackFunc told = function_.load()) told(data_.load(), domain, event, about);
}

void callbacks::tell_resource(std::uint32_t event, CUcontext context, CUstream stream) const {
  if (!wants_resource(event)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceHandle.stream = stream;
  tell(CUPTI_CB_DOMAIN_RESOURCE, event, &data);
}

void callbacks::tell_resource(std::uint32_t event, CUcontext context, CUpti_GraphData about) const {
  tell_described(event, context, &about);
}

void callbacks::tell_resource(std::uint32_t event, CUcontext context, CUpti_ModuleResourceData about) const {
  tell_described(event, context, &about);
}

void callbacks::tell_described(std::uint32_t event, CUcontext context, void* descriptor) const {
  if (!wants_resource(event)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceDescriptor = descriptor;
  tell(CUPTI_CB_DOMAIN_RESOURCE, event, &data);
}

void callbacks::tell_wait(std::uint32_t event, CUcontext context, CUstream stream) const {
  if (!wants_wait(event)) return;
  const CUpti_SynchronizeData data{context, stream};
  tell(CUPTI_CB_DOMAIN_SYNCHRONIZE, event, &data);
}

void callbacks::tell_nvtx(const CUpti_NvtxData& about) const {
  const std::uint32_t event = api::cupti::callback_of(api::cupti::domain::nvtx, about.functionName);
  if (event != 0 && nvtx_[event].load(std::memory_order_relaxed)) tell(CUPTI_CB_DOMAIN_NVTX, event, &about);
}

void callbacks::tell_state(std::uint32_t event, CUptiResult result, const char* message) const {
  if (event >= states_.size() || !states_[event]) return;
  CUpti_StateData data{};
  data.notification.result = result;
  data.notification.message = message;
  tell(CUPTI_CB_DOMAIN_STATE, event, &data);
}

void callbacks::tell(bool runtime, std::uint32_t callback, const CUpti_CallbackData& about) const {
  tell(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, callback, &about);
}

}  // namespace outboard::frontend::cupti
