// Contexts of the mock (one primary, a stack per thread), limits, and the calls that answer by a callback of
// the program.
#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

// It is valid before the first retain and after a reset, as in a driver.
const CUcontext primary = reinterpret_cast<CUcontext>(0xc0de0);

thread_local std::vector<CUcontext> stack;
thread_local const state* stack_owner = nullptr;

std::vector<CUcontext>& own_stack() {
  if (stack_owner != &here()) stack.clear();
  stack_owner = &here();
  return stack;
}

CUresult primary_retain(CUcontext* context, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(here().mutex);
  ++here().primary_references;
  return *context = primary, CUDA_SUCCESS;
}

CUresult primary_release(CUdevice device) {
  std::lock_guard lock(here().mutex);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (here().primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  return --here().primary_references, CUDA_SUCCESS;
}

CUresult primary_reset(CUdevice device) {
  std::lock_guard lock(here().mutex);
  return here().primary_references = 0, CUDA_SUCCESS;
}

CUresult primary_state(CUdevice device, unsigned* flags, int* active) {
  std::lock_guard lock(here().mutex);
  *flags = 0;
  return *active = here().primary_references > 0, CUDA_SUCCESS;
}

CUresult push(CUcontext context) { return own_stack().push_back(context), CUDA_SUCCESS; }

CUresult pop(CUcontext* context) {
  auto& own = own_stack();
  if (own.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = own.back();
  return own.pop_back(), CUDA_SUCCESS;
}

CUresult set_current(CUcontext context) {
  auto& own = own_stack();
  if (!own.empty()) own.pop_back();
  if (context != nullptr) own.push_back(context);
  return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* context) {
  const auto& own = own_stack();
  return *context = own.empty() ? nullptr : own.back(), CUDA_SUCCESS;
}

CUresult create(CUcontext* context, unsigned, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *context = reinterpret_cast<CUcontext>(here().make_handle());
  return push(*context);
}

CUresult get_limit(std::size_t* value, CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      *value = 1 << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      *value = 8 << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      *value = 2048;
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      *value = 64;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return limit < CU_LIMIT_MAX ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

CUresult priority_range(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult launch_host_function(CUstream, CUhostFn function, void* data) {
  return function(data), CUDA_SUCCESS;
}

CUresult add_callback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  return callback(stream, CUDA_SUCCESS, data), CUDA_SUCCESS;
}

}  // namespace

void set_context_behaviours(api::driver_table& b) {
  b.cuDevicePrimaryCtxRetain = primary_retain;
  b.cuDevicePrimaryCtxRelease = b.cuDevicePrimaryCtxRelease_v2 = primary_release;
  b.cuDevicePrimaryCtxReset = b.cuDevicePrimaryCtxReset_v2 = primary_reset;
  b.cuDevicePrimaryCtxGetState = primary_state;
  b.cuCtxPushCurrent = b.cuCtxPushCurrent_v2 = push;
  b.cuCtxPopCurrent = b.cuCtxPopCurrent_v2 = pop;
  b.cuCtxSetCurrent = set_current;
  b.cuCtxGetCurrent = get_current;
  b.cuCtxCreate_v2 = create;
  b.cuCtxGetLimit = get_limit;
  b.cuCtxGetStreamPriorityRange = priority_range;
  b.cuLaunchHostFunc = b.cuLaunchHostFunc_ptsz = launch_host_function;
  b.cuStreamAddCallback = b.cuStreamAddCallback_ptsz = add_callback;
}

}  // namespace outboard::device::mock
