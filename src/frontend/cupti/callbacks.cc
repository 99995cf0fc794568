#include "frontend/cupti/callbacks.hh"

#include <algorithm>
#include <utility>

#include "api/cupti/names.hh"
#include "base/log.hh"

namespace outboard::frontend::cupti {
namespace {

/// The domains of which something is told.
constexpr std::array told_domains{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                  CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                  CUPTI_CB_DOMAIN_STATE};

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
  for (const auto domain : told_domains)
    (void)set(false, domain, 1, static_cast<std::uint32_t>(flags_of(domain).size() - 1));
  return CUPTI_SUCCESS;
}

/// By the callback's number; none: nothing is told of this domain.
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
  if (flags.empty()) return refuse(domain);
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
  return count == 0 ? refuse(domain) : set(on, domain, 1, static_cast<std::uint32_t>(count - 1));
}

CUptiResult callbacks::state(std::uint32_t* out, CUpti_SubscriberHandle subscriber,
                             CUpti_CallbackDomain domain, std::uint32_t callback) const {
  const std::lock_guard lock(mutex_);
  if (!out || !is_ours(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::span<const flag> flags = flags_of(domain);
  if (flags.empty()) return refuse(domain);
  *out = callback < flags.size() && flags[callback];
  return CUPTI_SUCCESS;
}

/// With the lock. States are told without anybody looking at calls.
void callbacks::refresh() {
  any_ = std::ranges::any_of(told_domains, [this](CUpti_CallbackDomain domain) {
    return domain != CUPTI_CB_DOMAIN_STATE &&
           std::ranges::any_of(flags_of(domain), [](const flag& wanted) { return wanted.load(); });
  });
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

void callbacks::tell_wait(std::uint32_t event, CUcontext context, CUstream stream) const {
  if (!wants_wait(event)) return;
  const CUpti_SynchronizeData data{context, stream};
  tell(CUPTI_CB_DOMAIN_SYNCHRONIZE, event, &data);
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
