// Chapter primary_context: counted here; the server hears of the first retain, the last release and the
// reset.
#include <mutex>

#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/tables/cls.hh"

namespace outboard::frontend::cuda {
namespace {

std::mutex& primary_mutex() {
  static std::mutex* const m = new std::mutex;  // never destroyed: see process::instance()
  return *m;
}

CUresult find(CUdevice dev, context_state*& out) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  out = p.objects().primary(dev);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

using tells = opcode_for<marshal::context_body>;

marshal::context_body body_of(const context_state& context) {
  return {context.handle, context.device, context.flags.load()};
}

CUresult tell(tells what, const context_state& context) {
  typed_request r(what, this_lane(), body_of(context));
  return r.in_context(0).post();
}

CUresult tell_of_end(tells what, const context_state& context) {
  typed_request r(what, this_lane(), body_of(context));
  return tell_of_death(r.in_context(0), context);
}

/// Flags of cuCtxCreate and the primary context that mean something since CUDA 11.
constexpr unsigned known_flags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                 CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

}  // namespace

CUresult ends::cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  context_state* context = nullptr;
  if (const CUresult code = find(dev, context); code != CUDA_SUCCESS) return code;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(primary_mutex());
  if (context->lost.load()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (!context->active.load()) {
    if (const CUresult code = tell(api::opcode::cuDevicePrimaryCtxRetain, *context); code != CUDA_SUCCESS)
      return code;
    if (context->died.load()) forget_last_life(this_lane(), *context);
    context->sticky.store(0);
    context->active.store(true, std::memory_order_release);
  }
  ++context->retained;
  *pctx = reinterpret_cast<CUcontext>(context->handle);
  return CUDA_SUCCESS;
}

CUresult ends::cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  context_state* context = nullptr;
  if (const CUresult code = find(dev, context); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(primary_mutex());
  if (context->retained.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->retained > 0 || !context->active.load()) return CUDA_SUCCESS;
  freed_names freed;
  context_died(*context, freed);
  return tell_of_end(api::opcode::cuDevicePrimaryCtxRelease_v2, *context);
}

CUresult ends::cuDevicePrimaryCtxRelease(CUdevice dev) { return ends::cuDevicePrimaryCtxRelease_v2(dev); }

CUresult ends::cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  context_state* context = nullptr;
  if (const CUresult code = find(dev, context); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(primary_mutex());
  if (!context->active.load()) return CUDA_SUCCESS;
  // Measured on driver 580: a process whose context a fault has ended gets no other one.
  const bool vendor = process::instance().facts().device_kind == "vendor";
  if (vendor && context->sticky.load() != 0) context->lost.store(true);
  freed_names freed;
  context_died(*context, freed);  // those who retained it may release it still
  context->flags.store(0);
  return tell_of_end(api::opcode::cuDevicePrimaryCtxReset_v2, *context);
}

CUresult ends::cuDevicePrimaryCtxReset(CUdevice dev) { return ends::cuDevicePrimaryCtxReset_v2(dev); }

CUresult ends::cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags) {
  context_state* context = nullptr;
  if (const CUresult code = find(dev, context); code != CUDA_SUCCESS) return code;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~known_flags) || (schedule & (schedule - 1))) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(primary_mutex());
  context->flags.store(flags);
  return tell(api::opcode::cuDevicePrimaryCtxSetFlags_v2, *context);
}

CUresult ends::cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
  return ends::cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult ends::cuDevicePrimaryCtxGetState(CUdevice dev, unsigned* flags, int* active) {
  context_state* context = nullptr;
  if (const CUresult code = find(dev, context); code != CUDA_SUCCESS) return code;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags.load();
  *active = context->active.load();
  return CUDA_SUCCESS;
}

void forget_last_life(lane& own, const context_state& context) {
  process& p = process::instance();
  for (const api::handle_kind kind : {api::handle_kind::stream, api::handle_kind::event}) {
    p.objects().handles(kind).each([&](std::uint64_t, object& o) {
      if (o.context == context.handle) o.late.store(true);
    });
  }
  forget_page_locked(own, context.handle);
}

CUresult tell_of_death(request& r, const context_state& context) {
  session& server = *process::instance().server();
  if (!server.arrivals().has(context.handle) && !server.drains().pending_in(context.handle)) return r.post();
  const CUresult code = r.call();
  server.arrivals().drop(context.handle);
  server.drains().drop(context.handle);
  return code;
}

void context_died(context_state& context, freed_names& freed) {
  process& p = process::instance();
  context.active.store(false, std::memory_order_release);
  context.abandon_connections();
  context.died.store(true);
  cls_context_died(reinterpret_cast<CUcontext>(context.handle));
  forget_code_of_context(context.handle, freed);
  p.memory().mirrors().remove_context(context.handle);
  p.memory().arena().unshare(context.handle);
  for (const memory_block& block : p.memory().addresses().remove_if(
           [&](const memory_block& b) { return b.context == context.handle && !is_host(b.kind); })) {
    if (block.kind == memory_kind::managed) forget_managed(block);
    if (block.mapped) freed.add(p.memory().window_slot_at(block.base), block.base, block.mapped);
  }
  for (const opened_memory& m : p.memory().shared().take_context(context.handle))
    freed.add(p.memory().window_slot(m.slot), m.mapped_at, m.mapped_size);
  for (const std::uint64_t granule : context.small.clear())
    freed.add(p.memory().window_slot_at(granule), granule, window_granule);
}

}  // namespace outboard::frontend::cuda
