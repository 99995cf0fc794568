#include "device/cpu/context.hh"

#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {

void context::fresh() {
  {
    const std::lock_guard lock(heap_mutex);
    heap.reset();
  }
  group->error.store(CUDA_SUCCESS, std::memory_order_release);
  for (auto& limit : limits) limit = 0;
  limits[CU_LIMIT_STACK_SIZE] = 1024;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

thread_state& own_thread() {
  static thread_local thread_state own;
  if (const std::uint64_t now = here().generation; own.generation != now) {
    own = {};
    own.generation = now;
  }
  return own;
}

callback_scope::callback_scope() : before_(std::exchange(own_thread().in_callback, true)) {}
callback_scope::~callback_scope() { own_thread().in_callback = before_; }

CUresult initialised() {
  if (own_thread().in_callback) return CUDA_ERROR_NOT_PERMITTED;
  return here().initialised.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult current_context(context_ptr& out) {
  if (const CUresult result = initialised(); result != CUDA_SUCCESS) return result;
  const thread_state& own = own_thread();
  if (own.in_callback) return CUDA_ERROR_NOT_PERMITTED;
  if (own.stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const context_ptr& top = own.stack.back();
  if (!top->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const int error = top->error(); error != CUDA_SUCCESS) return static_cast<CUresult>(error);
  out = top;
  return CUDA_SUCCESS;
}

CUresult context_of(CUcontext handle, context_ptr& out) {
  if (handle == nullptr) return current_context(out);
  if (const CUresult result = initialised(); result != CUDA_SUCCESS) return result;
  const context_ptr found = here().contexts.find(reinterpret_cast<std::uint64_t>(handle));
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!found->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const int error = found->error(); error != CUDA_SUCCESS) return static_cast<CUresult>(error);
  out = found;
  return CUDA_SUCCESS;
}

CUresult stream_to_ask(const context_ptr& c, CUstream handle, bool per_thread, stream_ptr& out) {
  const bool legacy = handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread);
  if (!legacy) return stream_of(c, handle, per_thread, out);
  out = c->legacy;
  return c->group->capturing.load(std::memory_order_relaxed) == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult stream_of(const context_ptr& c, CUstream handle, bool per_thread, stream_ptr& out) {
  if (handle == nullptr) handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) {
    out = c->legacy;
    return capture_forbids_legacy(*c->group);
  }
  if (handle == CU_STREAM_PER_THREAD) {
    stream_ptr& own = own_thread().default_streams[c->id];
    if (own == nullptr) own = std::make_shared<stream>(c->group, stream_kind::blocking);
    out = own;
    return CUDA_SUCCESS;
  }
  const auto found = here().streams.find(reinterpret_cast<std::uint64_t>(handle));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  out = found->queue;
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
