// Chapter peer: what devices may do with each other's memory. The server's driver knows; which contexts have
// asked for it is kept there as well. Codes were measured on driver 580.159.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult tell(lane& own, opcode_for<marshal::peer_body> what, const context_state& peer, unsigned flags) {
  typed_request r(what, own, marshal::peer_body{peer.handle, peer.device, flags});
  return r.call();
}

/// The peer's context, which must live; the thread's own must, too.
CUresult find_peer(lane& own, CUcontext handle, context_state*& out) {
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  out = find_context(handle);
  if (!out) return CUDA_ERROR_INVALID_CONTEXT;
  return out->active.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

CUresult ends::cuCtxEnablePeerAccess(CUcontext peerContext, unsigned Flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  context_state* peer = nullptr;
  if (const CUresult code = find_peer(own, peerContext, peer); code != CUDA_SUCCESS) return code;
  if (peer->device == own.current()->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return tell(own, api::opcode::cuCtxEnablePeerAccess, *peer, Flags);
}

CUresult ends::cuCtxDisablePeerAccess(CUcontext peerContext) {
  lane& own = this_lane();
  context_state* peer = nullptr;
  if (const CUresult code = find_peer(own, peerContext, peer); code != CUDA_SUCCESS) return code;
  if (peer->device == own.current()->device) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  return tell(own, api::opcode::cuCtxDisablePeerAccess, *peer, 0);
}

}  // namespace outboard::frontend::cuda
