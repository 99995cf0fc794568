// Chapters stream and event: what is known of them here. Creation, ordering and waiting are generated.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace detail {
namespace {

std::unique_ptr<object> new_stream(unsigned flags, int priority) {
  static std::atomic<std::uint64_t> last_id{16};  // default streams have small ones
  auto info = std::make_unique<stream_info>();
  info->flags = flags;
  info->priority = priority;
  info->id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  if (const context_state* current = this_lane().current()) info->green = current->green;
  return info;
}

}  // namespace

std::unique_ptr<object> stream_in(std::uint64_t green, unsigned flags, int priority) {
  auto info = new_stream(flags, priority);
  static_cast<stream_info&>(*info).green = green;
  return info;
}

template <>
std::unique_ptr<object> remember<api::opcode::cuStreamCreate, CUstream*, unsigned>(CUstream*,
                                                                                   unsigned flags) {
  return new_stream(flags, 0);
}

template <>
std::unique_ptr<object> remember<api::opcode::cuStreamCreateWithPriority, CUstream*, unsigned, int>(
    CUstream*, unsigned flags, int priority) {
  const auto& facts =
      process::instance().facts().devices[static_cast<std::size_t>(this_lane().current()->device)];
  return new_stream(flags, std::clamp(priority, facts.greatest_priority, facts.least_priority));
}

template <>
std::unique_ptr<object> remember<api::opcode::cuEventCreate, CUevent*, unsigned>(CUevent*, unsigned flags) {
  auto info = std::make_unique<event_info>();
  info->flags = flags;
  return info;
}

}  // namespace detail

namespace {

/// Gate, null check, live stream; `give` gets the stream's facts (those of the default streams are
/// constants).
template <api::opcode Op, class Give>
CUresult answer(CUstream stream, const void* out, Give&& give) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if constexpr (api::function<Op>::about.uncaptured) {
    if (any_capture_open() && !default_stream(stream) && stream_captures(own, stream, false))
      return remote<api::opcode::cuStreamQuery>(stream);  // what that may not, this may not either
  }
  stream_info standard;
  standard.context = own.context_handle();
  standard.id = value_of(stream) + 1;
  standard.green = own.current()->green;
  if (default_stream(stream)) return give(standard), CUDA_SUCCESS;
  const auto* info = find_object<stream_info>(stream);
  return info ? (give(*info), CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult ends::cuStreamGetPriority(CUstream hStream, int* priority) {
  return answer<api::opcode::cuStreamGetPriority>(hStream, priority,
                                                  [&](const stream_info& s) { *priority = s.priority; });
}
CUresult ends::cuStreamGetPriority_ptsz(CUstream hStream, int* priority) {
  return ends::cuStreamGetPriority(hStream, priority);
}

CUresult ends::cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return answer<api::opcode::cuStreamGetDevice>(hStream, device, [&](const stream_info& s) {
    const context_state* context = process::instance().objects().find_context(s.context);
    *device = context ? context->device : 0;
  });
}
CUresult ends::cuStreamGetDevice_ptsz(CUstream hStream, CUdevice* device) {
  return ends::cuStreamGetDevice(hStream, device);
}

CUresult ends::cuStreamGetFlags(CUstream hStream, unsigned* flags) {
  return answer<api::opcode::cuStreamGetFlags>(hStream, flags,
                                               [&](const stream_info& s) { *flags = s.flags; });
}
CUresult ends::cuStreamGetFlags_ptsz(CUstream hStream, unsigned* flags) {
  return ends::cuStreamGetFlags(hStream, flags);
}

CUresult ends::cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return answer<api::opcode::cuStreamGetId>(hStream, streamId,
                                            [&](const stream_info& s) { *streamId = s.id; });
}

/// Under the per-thread default stream the null stream is the thread's own.
CUresult ends::cuStreamGetId_ptsz(CUstream hStream, unsigned long long* streamId) {
  const bool own = hStream == nullptr || hStream == CU_STREAM_PER_THREAD;
  if (!own) return ends::cuStreamGetId(hStream, streamId);
  return answer<api::opcode::cuStreamGetId_ptsz>(
      hStream, streamId, [&](const stream_info&) { *streamId = (1ull << 32) + this_lane().id; });
}

CUresult ends::cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  std::uint64_t green = 0;
  const CUresult code = answer<api::opcode::cuStreamGetCtx>(hStream, pctx, [&](const stream_info& s) {
    *pctx = reinterpret_cast<CUcontext>(s.context);
    green = s.green;
  });
  if (code != CUDA_SUCCESS || !green) return code;
  return ends::cuCtxFromGreenCtx(pctx, reinterpret_cast<CUgreenCtx>(green));
}
/// Of a green context's stream: its primary context, and beside it the green one.
CUresult ends::cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  return answer<api::opcode::cuStreamGetCtx_v2>(hStream, pCtx, [&](const stream_info& s) {
    *pCtx = reinterpret_cast<CUcontext>(s.context);
    if (pGreenCtx) *pGreenCtx = reinterpret_cast<CUgreenCtx>(s.green);
  });
}
CUresult ends::cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  return ends::cuStreamGetCtx_v2(hStream, pCtx, pGreenCtx);
}
CUresult ends::cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* green) {
  return answer<api::opcode::cuStreamGetGreenCtx>(
      hStream, green, [&](const stream_info& s) { *green = reinterpret_cast<CUgreenCtx>(s.green); });
}
CUresult ends::cuStreamGetCtx_ptsz(CUstream hStream, CUcontext* pctx) {
  return ends::cuStreamGetCtx(hStream, pctx);
}

}  // namespace outboard::frontend::cuda
