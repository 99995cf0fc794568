// Entries of the chapters context and primary context.
#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUcontext handle_of(const context_ptr& c) { return reinterpret_cast<CUcontext>(c->handle); }

// --- primary
// --------------------------------------------------------------------------------------------------------

CUresult primary_retain(CUcontext* out, CUdevice device) {
  return after_init([&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    machine& m = here();
    std::lock_guard lock(m.primary_mutex);
    if (m.primary_references++ == 0) {
      m.primary->flags = m.primary_flags;
      m.primary->active.store(true, std::memory_order_release);
    }
    return *out = handle_of(m.primary), CUDA_SUCCESS;
  });
}

CUresult primary_release(CUdevice device) {
  return after_init([&]() -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    machine& m = here();
    std::lock_guard lock(m.primary_mutex);
    if (m.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--m.primary_references == 0) m.end_context(m.primary);
    return CUDA_SUCCESS;
  });
}

CUresult primary_reset(CUdevice device) {
  return after_init([&]() -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    machine& m = here();
    std::lock_guard lock(m.primary_mutex);
    if (m.primary_references > 0) m.end_context(m.primary);
    m.primary_references = 0;
    return CUDA_SUCCESS;
  });
}

bool valid_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 && (schedule & (schedule - 1)) == 0;
}

CUresult primary_set_flags(CUdevice device, unsigned flags) {
  return after_init([&]() -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    machine& m = here();
    std::lock_guard lock(m.primary_mutex);
    m.primary_flags = flags;
    if (m.primary_references > 0) m.primary->flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult primary_get_state(CUdevice device, unsigned* flags, int* active) {
  return after_init([&]() -> CUresult {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    machine& m = here();
    std::lock_guard lock(m.primary_mutex);
    *flags = m.primary_flags;
    *active = m.primary_references > 0;
    return CUDA_SUCCESS;
  });
}

// --- the thread's stack
// ---------------------------------------------------------------------------------------------

CUresult push(CUcontext handle) {
  return after_init([&]() -> CUresult {
    const auto c = here().contexts.find(reinterpret_cast<std::uint64_t>(handle));
    if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    own_thread().stack.push_back(c);
    return CUDA_SUCCESS;
  });
}

CUresult pop(CUcontext* out) {
  return after_init([&]() -> CUresult {
    auto& stack = own_thread().stack;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = handle_of(stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult set_current(CUcontext handle) {
  return after_init([&]() -> CUresult {
    auto& stack = own_thread().stack;
    if (handle == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return CUDA_SUCCESS;
    }
    if (!stack.empty() && handle_of(stack.back()) == handle) return CUDA_SUCCESS;
    const auto c = here().contexts.find(reinterpret_cast<std::uint64_t>(handle));
    if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.empty()) {
      stack.push_back(c);
    } else {
      stack.back() = c;
    }
    return CUDA_SUCCESS;
  });
}

CUresult get_current(CUcontext* out) {
  return after_init([&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = own_thread().stack;
    return *out = stack.empty() ? nullptr : handle_of(stack.back()), CUDA_SUCCESS;
  });
}

// --- created contexts
// -----------------------------------------------------------------------------------------------

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    const context_ptr c = here().make_context(false, flags);
    own_thread().stack.push_back(c);
    return *out = handle_of(c), CUDA_SUCCESS;
  });
}

CUresult create_with_parameters(CUcontext* out, CUctxCreateParams* parameters, unsigned flags,
                                CUdevice device) {
  // Execution affinity and CIG: the device has neither.
  const bool plain =
      parameters == nullptr || (parameters->numExecAffinityParams == 0 && parameters->cigParams == nullptr);
  return plain ? create(out, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult destroy(CUcontext handle) {
  return after_init([&]() -> CUresult {
    machine& m = here();
    const auto c = m.contexts.find(reinterpret_cast<std::uint64_t>(handle));
    if (c == nullptr || c->primary) return CUDA_ERROR_INVALID_CONTEXT;
    m.contexts.remove(c->handle);
    m.end_context(c);
    auto& stack = own_thread().stack;
    if (!stack.empty() && stack.back() == c) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

// --- questions and settings
// -----------------------------------------------------------------------------------------

CUresult get_device(CUdevice* out) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = 0, CUDA_SUCCESS;
  });
}

CUresult get_device_of(CUdevice* out, CUcontext handle) {
  return after_init([&]() -> CUresult {
    context_ptr c;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = context_of(handle, c); r != CUDA_SUCCESS) return r;
    return *out = 0, CUDA_SUCCESS;
  });
}

CUresult get_flags(unsigned* out) {
  return with_context([&](context& c, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = c.flags, CUDA_SUCCESS;
  });
}

CUresult set_flags(unsigned flags) {
  return with_context([&](context& c, const context_ptr&) -> CUresult {
    if (!valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    return c.flags = flags, CUDA_SUCCESS;
  });
}

CUresult get_id(CUcontext handle, unsigned long long* out) {
  return after_init([&]() -> CUresult {
    context_ptr c;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = context_of(handle, c); r != CUDA_SUCCESS) return r;
    return *out = c->id, CUDA_SUCCESS;
  });
}

CUresult get_api_version(CUcontext handle, unsigned* out) {
  return after_init([&]() -> CUresult {
    context_ptr c;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = context_of(handle, c); r != CUDA_SUCCESS) return r;
    return *out = c->version, CUDA_SUCCESS;
  });
}

CUresult synchronize_context(const context_ptr& c) {
  // Of whatever mode: what a captured stream will do cannot be waited for.
  if (const CUresult r = capture_forbids_context(*c->group); r != CUDA_SUCCESS) return r;
  here().work.synchronize(c->group);
  return static_cast<CUresult>(c->error());
}

CUresult synchronize() {
  return with_context([](context&, const context_ptr& c) { return synchronize_context(c); });
}

CUresult synchronize_of(CUcontext handle) {
  return after_init([&]() -> CUresult {
    context_ptr c;
    if (const CUresult r = context_of(handle, c); r != CUDA_SUCCESS) return r;
    return synchronize_context(c);
  });
}

/// Nothing of memory persists in a cache here.
CUresult reset_persisting_cache() {
  return with_context([](context&, const context_ptr&) { return CUDA_SUCCESS; });
}

bool known_limit(CUlimit limit) { return limit >= 0 && limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE; }

CUresult get_limit(std::size_t* out, CUlimit limit) {
  return with_context([&](context& c, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!known_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    return *out = c.limits[static_cast<std::size_t>(limit)], CUDA_SUCCESS;
  });
}

CUresult set_limit(CUlimit limit, std::size_t value) {
  return with_context([&](context& c, const context_ptr&) -> CUresult {
    if (!known_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return CUDA_ERROR_UNSUPPORTED_LIMIT;  // gone since CUDA 12
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && value > 0) return CUDA_ERROR_INVALID_VALUE;
    // A thread may have 512 KiB of local memory at every compute capability.
    if (limit == CU_LIMIT_STACK_SIZE && value > 512u << 10) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
      const std::lock_guard lock(c.heap_mutex);
      if (c.heap != nullptr) return CUDA_ERROR_INVALID_VALUE;  // a kernel that may use it has been launched
    }
    return c.limits[static_cast<std::size_t>(limit)] = value, CUDA_SUCCESS;
  });
}

CUresult get_priority_range(int* least, int* greatest) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = greatest_priority;
    return CUDA_SUCCESS;
  });
}

// Hints about caches that a CPU does not have to set.
CUresult get_cache_config(CUfunc_cache* out) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = CU_FUNC_CACHE_PREFER_NONE, CUDA_SUCCESS;
  });
}
CUresult set_cache_config(CUfunc_cache) {
  return with_context([](context&, const context_ptr&) { return CUDA_SUCCESS; });
}
CUresult get_shared_config(CUsharedconfig* out) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, CUDA_SUCCESS;
  });
}
CUresult set_shared_config(CUsharedconfig) {
  return with_context([](context&, const context_ptr&) { return CUDA_SUCCESS; });
}

/// Nobody writes to this device's memory from outside.
CUresult flush_writes_of_others(CUflushGPUDirectRDMAWritesTarget target,
                                CUflushGPUDirectRDMAWritesScope scope) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const bool known = target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                       (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                        scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
    return known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

void fill_context_entries(api::driver_table& t) {
  t.cuFlushGPUDirectRDMAWrites = flush_writes_of_others;
  t.cuDevicePrimaryCtxRetain = primary_retain;
  t.cuDevicePrimaryCtxRelease = t.cuDevicePrimaryCtxRelease_v2 = primary_release;
  t.cuDevicePrimaryCtxReset = t.cuDevicePrimaryCtxReset_v2 = primary_reset;
  t.cuDevicePrimaryCtxSetFlags = t.cuDevicePrimaryCtxSetFlags_v2 = primary_set_flags;
  t.cuDevicePrimaryCtxGetState = primary_get_state;
  t.cuCtxPushCurrent = t.cuCtxPushCurrent_v2 = push;
  t.cuCtxPopCurrent = t.cuCtxPopCurrent_v2 = pop;
  t.cuCtxSetCurrent = set_current;
  t.cuCtxGetCurrent = get_current;
  t.cuCtxCreate = t.cuCtxCreate_v2 = create;
  t.cuCtxCreate_v4 = create_with_parameters;
  t.cuCtxDestroy = t.cuCtxDestroy_v2 = destroy;
  t.cuCtxGetDevice = get_device;
  t.cuCtxGetDevice_v2 = get_device_of;
  t.cuCtxGetFlags = get_flags;
  t.cuCtxSetFlags = set_flags;
  t.cuCtxGetId = get_id;
  t.cuCtxGetApiVersion = get_api_version;
  t.cuCtxSynchronize = synchronize;
  t.cuCtxSynchronize_v2 = synchronize_of;
  t.cuCtxGetLimit = get_limit;
  t.cuCtxSetLimit = set_limit;
  t.cuCtxResetPersistingL2Cache = reset_persisting_cache;
  t.cuCtxGetStreamPriorityRange = get_priority_range;
  t.cuCtxGetCacheConfig = get_cache_config;
  t.cuCtxSetCacheConfig = set_cache_config;
  t.cuCtxGetSharedMemConfig = get_shared_config;
  t.cuCtxSetSharedMemConfig = set_shared_config;
}

}  // namespace outboard::device::cpu
