// Chapter primary_context: counted here; only the first retain, the last release and the reset travel.
#include <mutex>

#include "frontend/cuda/chapters/host_memory.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/tables/cls.hh"

namespace outboard::frontend::cuda {
namespace {

std::mutex& primary_mutex() {
  static std::mutex* const m = new std::mutex;  // never destroyed: calls come from destructors after main too
  return *m;
}

CUresult find(const lane& own, CUdevice dev, context_state*& out) {
  process& p = own.state();
  out = p.devices.primary(dev);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

using primary_line = like<api::opcode::cuDevicePrimaryCtxRetain>;

marshal::context_body body_of(const context_state& context) {
  return {.handle = context.handle, .device = context.device, .flags = context.flags.load()};
}

CUresult post_change(lane& own, primary_line what, const context_state& context) {
  return post(what, {own, 0}, body_of(context));
}

CUresult end_context(lane& own, primary_line what, const context_state& context) {
  request r(what, {own, 0}, body_of(context));
  return send_end(own, r, context);
}

/// Flags of cuCtxCreate and the primary context that mean something since CUDA 11.
constexpr unsigned known_flags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                 CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

}  // namespace

CUresult ends::cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  lane& own = this_lane();
  context_state* context = nullptr;
  if (const CUresult code = find(own, dev, context); code != CUDA_SUCCESS) return code;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(primary_mutex());
  if (context->lost.load()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (!context->active.load()) {
    if (const CUresult code = post_change(own, typed<api::opcode::cuDevicePrimaryCtxRetain>, *context);
        code != CUDA_SUCCESS)
      return code;
    if (context->died.load()) forget_last_life(own, *context);
    context->sticky.store(0);
    context->active.store(true, std::memory_order_release);
  }
  ++context->retained;
  *pctx = reinterpret_cast<CUcontext>(context->handle);
  return CUDA_SUCCESS;
}

CUresult ends::cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  lane& own = this_lane();
  context_state* context = nullptr;
  if (const CUresult code = find(own, dev, context); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(primary_mutex());
  if (context->retained.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->retained > 0 || !context->active.load()) return CUDA_SUCCESS;
  context_died(own, *context);
  return end_context(own, typed<api::opcode::cuDevicePrimaryCtxRelease_v2>, *context);
}

CUresult ends::cuDevicePrimaryCtxRelease(CUdevice dev) { return ends::cuDevicePrimaryCtxRelease_v2(dev); }

CUresult ends::cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  lane& own = this_lane();
  context_state* context = nullptr;
  if (const CUresult code = find(own, dev, context); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(primary_mutex());
  if (!context->active.load()) return CUDA_SUCCESS;
  // Measured on driver 580: a process whose context was ended by a fault does not get another one.
  const bool vendor = own.state().devices.facts().device_kind == "vendor";
  if (vendor && context->sticky.load() != 0) context->lost.store(true);
  context_died(own, *context);  // those who retained it may release it still
  context->flags.store(0);
  return end_context(own, typed<api::opcode::cuDevicePrimaryCtxReset_v2>, *context);
}

CUresult ends::cuDevicePrimaryCtxReset(CUdevice dev) { return ends::cuDevicePrimaryCtxReset_v2(dev); }

CUresult ends::cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags) {
  lane& own = this_lane();
  context_state* context = nullptr;
  if (const CUresult code = find(own, dev, context); code != CUDA_SUCCESS) return code;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~known_flags) || (schedule & (schedule - 1))) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(primary_mutex());
  context->flags.store(flags);
  return post_change(own, typed<api::opcode::cuDevicePrimaryCtxSetFlags_v2>, *context);
}

CUresult ends::cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags) {
  return ends::cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult ends::cuDevicePrimaryCtxGetState(CUdevice dev, unsigned* flags, int* active) {
  lane& own = this_lane();
  context_state* context = nullptr;
  if (const CUresult code = find(own, dev, context); code != CUDA_SUCCESS) return code;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags.load();
  *active = context->active.load();
  return CUDA_SUCCESS;
}

void forget_last_life(lane& own, const context_state& context) {
  process& p = own.state();
  for (const api::handle_kind kind : {api::handle_kind::stream, api::handle_kind::event}) {
    p.handles[kind].each([&](std::uint64_t, object& o) {
      if (o.context == context.handle) o.late.store(true);
    });
  }
  forget_page_locked(own, context.handle);
}

bool copies_under_way(const lane& own, const context_state& context) {
  session& server = *own.state().connection.server();
  return server.arrivals().has(context.handle) || server.copies_pending();
}

void drop_copies(const lane& own, const context_state& context) {
  session& server = *own.state().connection.server();
  server.arrivals().drop(context.handle);
  server.drains().drop(context.handle);
  expect_nothing_in_memory_of(this_lane(), context.handle);
}

void context_died(lane& own, context_state& context) {
  process& p = own.state();
  context.active.store(false, std::memory_order_release);
  context.abandon_connections();
  context.died.store(true);
  cls_context_died(reinterpret_cast<CUcontext>(context.handle));
  forget_code_of_context(own, context.handle);
  p.memory.mirrors.remove_context(context.handle);
  p.memory.arena.unshare(context.handle);
  for (const memory_block& block : p.memory.addresses.remove_if(
           [&](const memory_block& b) { return b.context == context.handle && !is_host(b.kind); })) {
    if (block.kind == memory_kind::managed) forget_managed(own, block);
    if (slot_addresses* slot = p.memory.window.slot_at(block.base); slot && block.mapped)
      slot->give_back(block.base, block.mapped);
  }
  for (const opened_memory& m : p.memory.shared.take_context(context.handle)) {
    if (slot_addresses* there = p.memory.window.slot(m.slot)) there->give_back(m.mapped_at, m.mapped_size);
  }
  for (const std::uint64_t granule : context.small.clear()) {
    if (slot_addresses* slot = p.memory.window.slot_at(granule)) slot->give_back(granule, window_granule);
  }
}

}  // namespace outboard::frontend::cuda
