// Chapter context: the stack of current contexts of each thread and their states live here; the server hears
// of created and destroyed contexts and of what changes the device's behaviour.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/coredump/coredump.hh"
#include "frontend/cuda/idle.hh"

#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {

context_state* find_context(CUcontext handle) {
  return process::instance().objects().find_context(value_of(handle));
}

namespace {

CUcontext handle_of(const context_state* context) {
  return context ? reinterpret_cast<CUcontext>(context->handle) : nullptr;
}

CUresult create(CUcontext* pctx, unsigned flags, CUdevice dev, unsigned api_version) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  const context_state* primary = p.objects().primary(dev);
  if (!primary) return CUDA_ERROR_INVALID_DEVICE;
  if (const int sticky = primary->sticky.load()) return static_cast<CUresult>(sticky);
  auto made = std::make_unique<context_state>();
  context_state* state = made.get();
  state->device = dev;
  state->flags = flags;
  state->api_version = api_version;
  state->id = p.objects().next_context_id();
  for (std::size_t i = 0; i < state->limits.size(); ++i) {
    state->limits[i] = p.facts().devices[static_cast<std::size_t>(dev)].limits[i];
  }
  const std::uint64_t handle = p.objects().handles(api::handle_kind::context).reserve(std::move(made));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  state->handle = handle;
  // As everywhere, a device that dumps nothing refuses nothing else.
  const bool dumps = (flags & CU_CTX_COREDUMP_ENABLE) != 0 && prepare_core_dumps() == CUDA_SUCCESS;
  request_of<api::opcode::cuCtxCreate_v2> r(own, marshal::context_body{handle, dev, flags});
  r.in_context(0);
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS) {
    p.objects().handles(api::handle_kind::context).release(handle);
    return code;
  }
  if (dumps) context_dumps(handle);
  state->active.store(true);
  own.contexts.push_back(state);
  *pctx = handle_of(state);
  return CUDA_SUCCESS;
}

/// The lane's current context for calls that need no more than its existence.
CUresult current(context_state*& out) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  out = own.current();
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/// The same, and it must not have been destroyed; it may have failed.
CUresult living(context_state*& out) {
  const CUresult code = current(out);
  return code == CUDA_SUCCESS && !out->active.load() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : code;
}

/// `ctx`, or the current one when null.
CUresult chosen(CUcontext ctx, context_state*& out) {
  if (!ctx) return current(out);
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  out = find_context(ctx);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

template <class T, class Give>
CUresult tell(T* out, Give&& give, CUresult (*find)(context_state*&) = current) {
  context_state* context = nullptr;
  if (const CUresult code = find(context); code != CUDA_SUCCESS) return code;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = give(*context);
  return CUDA_SUCCESS;
}

/// As cuCtxCreate and the primary context know them since CUDA 11.
bool flags_ok(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 &&
         (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
          schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

CUresult synchronize(lane& own) {
  const auto idle = idle_question::of_context(own);
  if (idle.known_idle()) return CUDA_SUCCESS;
  const CUresult code = request_of<api::opcode::cuCtxSynchronize>(own).call();
  if (code == CUDA_SUCCESS) idle.now_idle();
  return code;
}

}  // namespace

CUresult ends::cuCtxCreate_v2(CUcontext* pctx, unsigned flags, CUdevice dev) {
  return create(pctx, flags, dev, 3020);
}
CUresult ends::cuCtxCreate(CUcontext* pctx, unsigned flags, CUdevice dev) {
  return create(pctx, flags, dev, 3010);
}

CUresult ends::cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                              unsigned flags, CUdevice dev) {
  if (paramsArray || numParams) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(pctx, flags, dev, 3020);
}

CUresult ends::cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned flags, CUdevice dev) {
  if (params && (params->execAffinityParams || params->numExecAffinityParams)) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return create(pctx, flags, dev, 3020);
}

CUresult ends::cuCtxDestroy_v2(CUcontext ctx) {
  if (!ctx) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  context_state* context = find_context(ctx);
  if (!context || context->primary || context->green) return CUDA_ERROR_INVALID_CONTEXT;
  freed_names freed;
  context_died(*context, freed);
  request_of<api::opcode::cuCtxDestroy_v2> r(own, marshal::handle_body{context->handle});
  r.in_context(0);
  const CUresult code = tell_of_death(r, *context);
  if (own.current() == context) own.contexts.pop_back();
  // The state itself stays: other threads may have it current, and must be told that it is destroyed.
  return code;
}

CUresult ends::cuCtxDestroy(CUcontext ctx) { return ends::cuCtxDestroy_v2(ctx); }

CUresult ends::cuCtxPushCurrent_v2(CUcontext ctx) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!ctx) return CUDA_ERROR_INVALID_VALUE;
  context_state* context = find_context(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  own.contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxPushCurrent(CUcontext ctx) { return ends::cuCtxPushCurrent_v2(ctx); }

CUresult ends::cuCtxPopCurrent_v2(CUcontext* pctx) {
  context_state* context = nullptr;
  if (const CUresult code = current(context); code != CUDA_SUCCESS) return code;
  this_lane().contexts.pop_back();
  if (pctx) *pctx = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxPopCurrent(CUcontext* pctx) { return ends::cuCtxPopCurrent_v2(pctx); }

/// Replaces the top of the stack; null takes it off (manual).
CUresult ends::cuCtxSetCurrent(CUcontext ctx) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  context_state* context = ctx ? find_context(ctx) : nullptr;
  if (ctx && !context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!own.contexts.empty()) own.contexts.pop_back();
  if (context) own.contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetCurrent(CUcontext* pctx) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  *pctx = handle_of(own.current());
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetDevice(CUdevice* device) {
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  return tell(device, [](const context_state& c) { return c.device; });
}

CUresult ends::cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  context_state* context = nullptr;
  if (const CUresult code = chosen(ctx, context); code != CUDA_SUCCESS) return code;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetFlags(unsigned* flags) {
  return tell(flags, [](const context_state& c) { return c.flags.load(); });
}

CUresult ends::cuCtxSetFlags(unsigned flags) {
  context_state* context = nullptr;
  if (const CUresult code = current(context); code != CUDA_SUCCESS) return code;
  if (!flags_ok(flags)) return CUDA_ERROR_INVALID_VALUE;
  context->flags.store(flags);
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  context_state* context = nullptr;
  if (const CUresult code = chosen(ctx, context); code != CUDA_SUCCESS) return code;
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!ctxId) return CUDA_ERROR_INVALID_VALUE;
  *ctxId = context->id;
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetApiVersion(CUcontext ctx, unsigned* version) {
  context_state* context = nullptr;
  if (const CUresult code = chosen(ctx, context); code != CUDA_SUCCESS) return code;
  if (!context->active.load()) return ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxSynchronize() {
  lane& own = this_lane();
  const CUresult code = process::instance().gate(own);
  return code == CUDA_SUCCESS ? synchronize(own) : code;
}

CUresult ends::cuCtxSynchronize_v2(CUcontext ctx) {
  if (!ctx) return ends::cuCtxSynchronize();
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  context_state* context = find_context(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  own.contexts.push_back(context);
  const CUresult code = process::instance().gate(own);
  const CUresult done = code == CUDA_SUCCESS ? synchronize(own) : code;
  own.contexts.pop_back();
  return done;
}

CUresult ends::cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  context_state* context = nullptr;
  if (const CUresult code = current(context); code != CUDA_SUCCESS) return code;
  if (const CUresult code = process::instance().gate(this_lane()); code != CUDA_SUCCESS) return code;
  const auto id = static_cast<std::size_t>(limit);
  if (!pvalue || id >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (context->limits[id].load() == ~0ull) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *pvalue = context->limits[id].load();
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxSetLimit(CUlimit limit, size_t value) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (static_cast<std::size_t>(limit) >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuCtxSetLimit> r(own, marshal::limit_body{static_cast<std::int32_t>(limit), value});
  marshal::number_reply in_force;
  const CUresult code = r.call(in_force);
  const auto id = static_cast<std::size_t>(limit);
  if (code == CUDA_SUCCESS && id < own.current()->limits.size())
    own.current()->limits[id].store(static_cast<std::uint64_t>(in_force.value));
  return code;
}

CUresult ends::cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return tell(
      pconfig, [](const context_state& c) { return static_cast<CUfunc_cache>(c.cache_config.load()); },
      living);
}

CUresult ends::cuCtxSetCacheConfig(CUfunc_cache config) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  own.current()->cache_config.store(config);
  request_of<api::opcode::cuCtxSetCacheConfig> r(own, marshal::number_reply{config});
  return r.post();
}

/// Banks have one size since Kepler: accepted and remembered, as drivers do.
CUresult ends::cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return tell(
      pConfig, [](const context_state& c) { return static_cast<CUsharedconfig>(c.shared_config.load()); },
      living);
}

CUresult ends::cuCtxSetSharedMemConfig(CUsharedconfig config) {
  context_state* context = nullptr;
  if (const CUresult code = current(context); code != CUDA_SUCCESS) return code;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context->shared_config.store(config);
  return CUDA_SUCCESS;
}

CUresult ends::cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  context_state* context = nullptr;
  if (const CUresult code = living(context); code != CUDA_SUCCESS) return code;
  const auto& facts = process::instance().facts().devices[static_cast<std::size_t>(context->device)];
  if (leastPriority) *leastPriority = facts.least_priority;
  if (greatestPriority) *greatestPriority = facts.greatest_priority;
  return CUDA_SUCCESS;
}

/// Without MPS a context has all multiprocessors. Of a green one drivers do not say.
CUresult ends::cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  context_state* context = nullptr;
  if (const CUresult code = current(context); code != CUDA_SUCCESS) return code;
  if (!affinity) return CUDA_ERROR_INVALID_VALUE;
  if (context->green) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  const auto& facts = process::instance().facts().devices[static_cast<std::size_t>(context->device)];
  affinity->type = type;
  affinity->param.smCount.val =
      static_cast<unsigned>(facts.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT].value);
  return CUDA_SUCCESS;
}

/// Deprecated since CUDA 4: only the plain forms remain (manual).
CUresult ends::cuCtxAttach(CUcontext* pctx, unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return tell(pctx, [](const context_state& c) { return handle_of(&c); });
}

CUresult ends::cuCtxDetach(CUcontext ctx) {
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  return ctx ? ends::cuCtxDestroy_v2(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace outboard::frontend::cuda
