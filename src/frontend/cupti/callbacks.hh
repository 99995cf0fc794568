// CUPTI's callbacks: one subscriber in a process, and the functions of the driver, the runtime and NVTX for
// which it wants callbacks. Any thread.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "frontend/call_watch.hh"

namespace outboard::frontend::cupti {

class callbacks {
 public:
  CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc function, void* data);
  CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber);
  CUptiResult enable(bool on, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                     std::uint32_t callback);
  CUptiResult enable_domain(bool on, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain);
  CUptiResult state(std::uint32_t* out, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                    std::uint32_t callback) const;

  bool any() const { return any_.load(std::memory_order_relaxed); }
  bool wants(bool runtime, std::uint32_t callback) const {
    return callback < most_callbacks && wanted_[runtime][callback].load(std::memory_order_relaxed);
  }
  bool wants_resource(std::uint32_t event) const {
    return event < resources_.size() && resources_[event].load(std::memory_order_relaxed);
  }
  bool wants_wait(std::uint32_t event) const {
    return event < waits_.size() && waits_[event].load(std::memory_order_relaxed);
  }
  /// Whether callbacks about graphs are wanted.
  bool wants_graphs() const { return graphs_any_.load(std::memory_order_relaxed); }
  bool wants_nvtx() const { return nvtx_any_.load(std::memory_order_relaxed); }
  /// A call of NVTX, by its name. On the thread that makes it.
  void tell_nvtx(const CUpti_NvtxData& about) const;
  /// `event`: CUpti_CallbackIdResource. On the thread whose call does it.
  void tell_resource(std::uint32_t event, CUcontext context, CUstream stream) const;
  /// The same with what the event has more to say: CUpti_GraphData or CUpti_ModuleResourceData, as long as
  /// the call lasts.
  void tell_resource(std::uint32_t event, CUcontext context, CUpti_GraphData about) const;
  void tell_resource(std::uint32_t event, CUcontext context, CUpti_ModuleResourceData about) const;
  /// `event`: CUpti_CallbackIdSync. On the thread that has waited.
  void tell_wait(std::uint32_t event, CUcontext context, CUstream stream) const;
  /// The profiler itself cannot do what it was asked for. `message` lasts as long as the call.
  void tell_state(std::uint32_t event, CUptiResult result, const char* message) const;
  /// On the thread that calls. Calls the program's function.
  void tell(bool runtime, std::uint32_t callback, const CUpti_CallbackData& about) const;

  static constexpr std::uint32_t most_callbacks = 2048;

 private:
  using flag = std::atomic<bool>;
  bool is_ours(CUpti_SubscriberHandle subscriber) const;
  void refresh();
  std::span<const flag> flags_of(CUpti_CallbackDomain domain) const;
  std::span<flag> flags_of(CUpti_CallbackDomain domain);
  void tell(CUpti_CallbackDomain domain, std::uint32_t event, const void* about) const;
  /// A resource's event with what it has more to say; of the type that the event's descriptor has.
  void tell_described(std::uint32_t event, CUcontext context, void* descriptor) const;
  CUptiResult set(bool on, CUpti_CallbackDomain domain, std::uint32_t first, std::uint32_t last);

  mutable std::mutex mutex_;
  bool subscribed_ = false;
  std::atomic<CUpti_CallbackFunc> function_{nullptr};
  std::atomic<void*> data_{nullptr};
  std::atomic<bool> any_{false};
  std::array<std::array<flag, most_callbacks>, 2> wanted_{};  ///< driver, runtime
  std::array<flag, CUPTI_CBID_RESOURCE_SIZE> resources_{};
  std::array<flag, CUPTI_CBID_SYNCHRONIZE_SIZE> waits_{};
  std::array<flag, CUPTI_CBID_STATE_SIZE> states_{};
  std::array<flag, CUPTI_CBID_NVTX_SIZE> nvtx_{};
  std::atomic<bool> nvtx_any_{false}, graphs_any_{false};
};

}  // namespace outboard::frontend::cupti
