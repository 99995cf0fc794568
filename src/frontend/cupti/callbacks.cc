#include "frontend/cupti/callbacks.hh"

#include <algorithm>

#include "api/cupti/names.hh"
#include "base/log.hh"

namespace outboard::frontend::cupti {
namespace {

/// The domains of which something is told.
bool is_call_domain(CUpti_CallbackDomain domain) {
  return domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;
}

CUptiResult refuse(CUpti_CallbackDomain domain) {
  if (domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  static std::array<std::atomic<bool>, CUPTI_CB_DOMAIN_SIZE> told{};
  if (!told[domain].exchange(true))
    log::warn("CUPTI's callbacks of domain ", static_cast<int>(domain),
              " do not come: enabling them says CUPTI_ERROR_NOT_SUPPORTED");
  return CUPTI_ERROR_NOT_SUPPORTED;
}

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
  for (const auto domain :
       {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_RESOURCE})
    (void)set(false, domain, 1,
              domain == CUPTI_CB_DOMAIN_RESOURCE ? CUPTI_CBID_RESOURCE_SIZE - 1 : most_callbacks - 1);
  return CUPTI_SUCCESS;
}

/// With the lock.
CUptiResult callbacks::set(bool on, CUpti_CallbackDomain domain, std::uint32_t first, std::uint32_t last) {
  const auto set = [&](auto& flags) {
    if (first == 0 || last >= flags.size()) return CUPTI_ERROR_INVALID_PARAMETER;
    for (std::uint32_t i = first; i <= last; ++i) flags[i] = on;
    refresh();
    return CUPTI_SUCCESS;
  };
  if (is_call_domain(domain)) return set(wanted_[domain == CUPTI_CB_DOMAIN_RUNTIME_API]);
  return domain == CUPTI_CB_DOMAIN_RESOURCE ? set(resources_) : refuse(domain);
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
  const std::size_t count = domain == CUPTI_CB_DOMAIN_RESOURCE ? resources_.size() : most_callbacks;
  return set(on, domain, 1, static_cast<std::uint32_t>(count - 1));
}

CUptiResult callbacks::state(std::uint32_t* out, CUpti_SubscriberHandle subscriber,
                             CUpti_CallbackDomain domain, std::uint32_t callback) const {
  const std::lock_guard lock(mutex_);
  if (!out || !is_ours(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return *out = wants_resource(callback), CUPTI_SUCCESS;
  if (!is_call_domain(domain)) return refuse(domain);
  *out = wants(domain == CUPTI_CB_DOMAIN_RUNTIME_API, callback);
  return CUPTI_SUCCESS;
}

/// With the lock.
void callbacks::refresh() {
  const auto any_of = [](const auto& flags) {
    return std::ranges::any_of(flags, [](const auto& wanted) { return wanted.load(); });
  };
  any_ = any_of(wanted_[0]) || any_of(wanted_[1]) || any_of(resources_);
}

void callbacks::tell_resource(std::uint32_t event, CUcontext context, CUstream stream) const {
  if (!wants_resource(event)) return;
  CUpti_ResourceData data{};
  data.context = context;
  data.resourceHandle.stream = stream;
  if (const CUpti_CallbackFunc told = function_.load())
    told(data_.load(), CUPTI_CB_DOMAIN_RESOURCE, event, &data);
}

void callbacks::tell(bool runtime, std::uint32_t callback, const CUpti_CallbackData& about) const {
  if (const CUpti_CallbackFunc told = function_.load())
    told(data_.load(), runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, callback, &about);
}

}  // namespace outboard::frontend::cupti
