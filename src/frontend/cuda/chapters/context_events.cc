// Chapters context and green context: events of all work of a context.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult check_event(CUevent event) {
  return find_object<object>(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Whose context it is decides whether it may be used, not the thread's current one.
CUresult check_context(CUcontext handle) {
  const context_state* context = find_context(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (const std::int32_t sticky = context->sticky.load()) return static_cast<CUresult>(sticky);
  return context->active.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// A call: an event of another context, or one under capture, is the driver's to refuse.
CUresult send(lane& own, std::uint64_t context, CUevent event, bool wait, bool green) {
  if (const CUresult code = check_event(event); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuCtxRecordEvent> r(
      own, marshal::context_event_body{context, value_of(event), wait, green});
  r.in_context(0);
  return r.call();
}

template <api::opcode Op>
CUresult of_context(CUcontext context, CUevent event, bool wait) {
  lane& own = this_lane();
  if (const CUresult refused = gate<Op>(own); refused != CUDA_SUCCESS) return refused;
  const CUresult code = check_context(context);
  return code == CUDA_SUCCESS ? send(own, value_of(context), event, wait, false) : code;
}

template <api::opcode Op>
CUresult of_green(CUgreenCtx context, CUevent event, bool wait) {
  lane& own = this_lane();
  if (const CUresult refused = gate<Op>(own); refused != CUDA_SUCCESS) return refused;
  if (!find_object<object>(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return send(own, value_of(context), event, wait, true);
}

}  // namespace

namespace ends {

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  return of_context<api::opcode::cuCtxRecordEvent>(context, event, false);
}
CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
  return of_context<api::opcode::cuCtxWaitEvent>(context, event, true);
}
CUresult cuGreenCtxRecordEvent(CUgreenCtx context, CUevent event) {
  return of_green<api::opcode::cuGreenCtxRecordEvent>(context, event, false);
}
CUresult cuGreenCtxWaitEvent(CUgreenCtx context, CUevent event) {
  return of_green<api::opcode::cuGreenCtxWaitEvent>(context, event, true);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
