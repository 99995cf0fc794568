#include "backend/worker/warm_device.hh"

#include <unistd.h>

#include <mutex>

namespace outboard::backend {
namespace {

bool on_main_thread() { return ::gettid() == ::getpid(); }

/// The context in waiting. One a process, because entries of a driver carry no pointer to their device.
class waiting_context {
 public:
  void hold(const api::driver_table& driver, CUdevice ordinal) {
    const std::lock_guard lock(mutex_);
    driver_ = &driver;
    device_ = ordinal;
    held_ = true;
  }

  const api::driver_table& driver() const { return *driver_; }

  bool holds(CUdevice ordinal) {
    const std::lock_guard lock(mutex_);
    return held_ && device_ == ordinal;
  }

  /// The program retains: our reference becomes its own.
  bool hand_over(CUdevice ordinal, CUcontext* to) {
    const std::lock_guard lock(mutex_);
    if (!held_ || device_ != ordinal) return false;
    // There is no call that gives the handle alone: take a second reference and give the first one back.
    if (driver_->cuDevicePrimaryCtxRetain(to, ordinal) != CUDA_SUCCESS) return false;
    driver_->cuDevicePrimaryCtxRelease_v2(ordinal);
    held_ = false;
    return true;
  }

  void give_up() {
    const std::lock_guard lock(mutex_);
    if (!held_) return;
    held_ = false;
    driver_->cuDevicePrimaryCtxRelease_v2(device_);
  }

 private:
  std::mutex mutex_;
  const api::driver_table* driver_ = nullptr;
  CUdevice device_ = 0;
  bool held_ = false;
};

waiting_context waiting;

CUresult CUDAAPI retain(CUcontext* context, CUdevice ordinal) {
  if (on_main_thread()) return waiting.driver().cuDevicePrimaryCtxRetain(context, ordinal);
  if (waiting.hand_over(ordinal, context)) return CUDA_SUCCESS;
  waiting.give_up();  // the program uses another device
  return waiting.driver().cuDevicePrimaryCtxRetain(context, ordinal);
}

CUresult CUDAAPI get_state(CUdevice ordinal, unsigned* flags, int* active) {
  const CUresult code = waiting.driver().cuDevicePrimaryCtxGetState(ordinal, flags, active);
  if (code == CUDA_SUCCESS && active && !on_main_thread() && waiting.holds(ordinal)) *active = 0;
  return code;
}

CUresult CUDAAPI set_flags(CUdevice ordinal, unsigned flags) {
  unsigned now = 0;
  int active = 0;
  if (waiting.holds(ordinal) &&
      (waiting.driver().cuDevicePrimaryCtxGetState(ordinal, &now, &active) != CUDA_SUCCESS || now != flags)) {
    waiting.give_up();
  }
  return waiting.driver().cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult CUDAAPI release(CUdevice ordinal) {
  // The reference is ours, not the program's: to it the context has never been retained.
  if (!on_main_thread() && waiting.holds(ordinal)) waiting.give_up();
  return waiting.driver().cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult CUDAAPI reset(CUdevice ordinal) {
  if (waiting.holds(ordinal)) waiting.give_up();
  return waiting.driver().cuDevicePrimaryCtxReset_v2(ordinal);
}

/// A context in waiting has been made without what is set now.
CUresult CUDAAPI set_core_dumps(CUcoredumpSettings attribute, void* value, std::size_t* size) {
  const CUresult code = waiting.driver().cuCoredumpSetAttributeGlobal(attribute, value, size);
  if (code == CUDA_SUCCESS) waiting.give_up();
  return code;
}

/// A program that makes contexts of its own has no use for the primary one. Given up afterwards: the first
/// context of a process is the expensive one.
template <auto Entry, class... Arguments>
CUresult create(Arguments... arguments) {
  const CUresult code = (waiting.driver().*Entry)(arguments...);
  waiting.give_up();
  return code;
}

class warm_device final : public device::device {
 public:
  explicit warm_device(outboard::device::device& inner) : inner_(inner), table_(inner.cuda()) {
    using api::driver_table;
    const auto replace = [](auto& entry, auto* ours) {
      if (entry) entry = ours;
    };
    replace(table_.cuDevicePrimaryCtxRetain, retain);
    replace(table_.cuDevicePrimaryCtxGetState, get_state);
    replace(table_.cuDevicePrimaryCtxSetFlags_v2, set_flags);
    replace(table_.cuDevicePrimaryCtxRelease_v2, release);
    replace(table_.cuDevicePrimaryCtxReset_v2, reset);
    replace(table_.cuCoredumpSetAttributeGlobal, set_core_dumps);
    replace(table_.cuCtxCreate_v2, create<&driver_table::cuCtxCreate_v2, CUcontext*, unsigned, CUdevice>);
    replace(table_.cuCtxCreate_v3,
            create<&driver_table::cuCtxCreate_v3, CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice>);
    replace(table_.cuCtxCreate_v4,
            create<&driver_table::cuCtxCreate_v4, CUcontext*, CUctxCreateParams*, unsigned, CUdevice>);
  }
  ~warm_device() override { waiting.give_up(); }

  std::string_view kind() const override { return inner_.kind(); }
  std::string describe() const override { return inner_.describe(); }
  const api::driver_table& cuda() const override { return table_; }
  outboard::device::work_recorder* recorder() override { return inner_.recorder(); }
  int descriptor_behind(const CUipcEventHandle& handle) const override {
    return inner_.descriptor_behind(handle);
  }
  CUipcEventHandle with_descriptor(const CUipcEventHandle& handle, int descriptor) const override {
    return inner_.with_descriptor(handle, descriptor);
  }

 private:
  outboard::device::device& inner_;
  api::driver_table table_;
};

}  // namespace

result<std::unique_ptr<device::device>> make_warm_device(device::device& inner, int ordinal) {
  const api::driver_table& driver = inner.cuda();
  if (!driver.cuDevicePrimaryCtxRetain || !driver.cuDevicePrimaryCtxRelease_v2 ||
      !driver.cuDevicePrimaryCtxGetState || !driver.cuDevicePrimaryCtxSetFlags_v2) {
    return failure("the device has no primary contexts");
  }
  CUcontext context = nullptr;
  const CUresult code = driver.cuDevicePrimaryCtxRetain(&context, ordinal);
  if (code != CUDA_SUCCESS) return failure("cuDevicePrimaryCtxRetain: error " + std::to_string(code));
  waiting.hold(driver, ordinal);
  return std::unique_ptr<device::device>(std::make_unique<warm_device>(inner));
}

}  // namespace outboard::backend
