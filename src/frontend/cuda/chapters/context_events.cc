// Chapters context and green context: events of all work of a context.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult check_event(const lane& own, CUevent event) {
  return find_object<object>(own, event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// The context that is named decides whether it may be used, not the thread's current one.
CUresult check_context(const lane& own, CUcontext handle) {
  const context_state* context = find_context(own, handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (const std::int32_t sticky = context->sticky.load()) return static_cast<CUresult>(sticky);
  return context->active.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// A call: an event of another context, or one under capture, is the driver's to refuse.
CUresult send(lane& own, std::uint64_t context, CUevent event, bool wait, bool green) {
  if (const CUresult code = check_event(own, event); code != CUDA_SUCCESS) return code;
  return call<api::opcode::cuCtxRecordEvent>(
      {own, 0}, marshal::context_event_body{
                    .context = context, .event = value_of(event), .wait = wait, .green = green});
}

CUresult of_context(CUcontext context, CUevent event, bool wait) {
  lane& own = this_lane();
  const CUresult code = check_context(own, context);
  return code == CUDA_SUCCESS ? send(own, value_of(context), event, wait, false) : code;
}

CUresult of_green(CUgreenCtx context, CUevent event, bool wait) {
  lane& own = this_lane();
  if (!find_object<object>(own, context)) return CUDA_ERROR_INVALID_CONTEXT;
  return send(own, value_of(context), event, wait, true);
}

}  // namespace

namespace ends {

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) { return of_context(context, event, false); }
CUresult cuCtxWaitEvent(CUcontext context, CUevent event) { return of_context(context, event, true); }
CUresult cuGreenCtxRecordEvent(CUgreenCtx context, CUevent event) { return of_green(context, event, false); }
CUresult cuGreenCtxWaitEvent(CUgreenCtx context, CUevent event) { return of_green(context, event, true); }

}  // namespace ends
}  // namespace outboard::frontend::cuda
