// Notifications of what happens to the process beside its calls. There is one: that it holds more memory than
// its budget. A session cannot come to that (an allocation beyond its share fails), as on Linux drivers
// without a budget, so registrations are kept and never called. Any thread.
#include <mutex>
#include <set>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda {
namespace {

struct registrations {
  std::mutex mutex;  // guards what follows
  std::set<std::pair<CUdevice, std::uintptr_t>> known;
  std::uintptr_t last = 0;
};

registrations& all() {
  static auto* made = new registrations;  // never destroyed: calls come from destructors after main too
  return *made;
}

}  // namespace

CUresult ends::cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callback, void*,
                                                 CUasyncCallbackHandle* out) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuDeviceRegisterAsyncNotification>(own); code != CUDA_SUCCESS)
    return code;
  if (!process::instance().objects().primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!callback || !out) return CUDA_ERROR_INVALID_VALUE;
  registrations& r = all();
  const std::lock_guard lock(r.mutex);
  r.known.emplace(device, ++r.last);
  *out = reinterpret_cast<CUasyncCallbackHandle>(r.last);
  return CUDA_SUCCESS;
}

CUresult ends::cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuDeviceUnregisterAsyncNotification>(own); code != CUDA_SUCCESS)
    return code;
  if (!process::instance().objects().primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  registrations& r = all();
  const std::lock_guard lock(r.mutex);
  const bool found = r.known.erase({device, reinterpret_cast<std::uintptr_t>(callback)}) != 0;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The profiler that it set up is gone; drivers say so even before cuInit.
CUresult ends::cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace outboard::frontend::cuda
