// Chapter peer: what devices may do with each other's memory. The server's driver knows; which contexts have
// asked for it is kept there as well. Codes were measured on driver 580.159.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult send(lane& own, like<api::opcode::cuCtxEnablePeerAccess> what, const context_state& peer,
              unsigned flags) {
  return call(what, own, marshal::peer_body{.context = peer.handle, .device = peer.device, .flags = flags});
}

/// The peer's context, which must live.
CUresult find_peer(lane& own, CUcontext handle, context_state*& out) {
  out = find_context(own, handle);
  return out && out->active.load() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUresult ends::cuCtxEnablePeerAccess(CUcontext peerContext, unsigned Flags) {
  lane& own = this_lane();
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  context_state* peer = nullptr;
  if (const CUresult code = find_peer(own, peerContext, peer); code != CUDA_SUCCESS) return code;
  if (peer->device == own.current()->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return send(own, typed<api::opcode::cuCtxEnablePeerAccess>, *peer, Flags);
}

CUresult ends::cuCtxDisablePeerAccess(CUcontext peerContext) {
  lane& own = this_lane();
  context_state* peer = nullptr;
  if (const CUresult code = find_peer(own, peerContext, peer); code != CUDA_SUCCESS) return code;
  if (peer->device == own.current()->device) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  return send(own, typed<api::opcode::cuCtxDisablePeerAccess>, *peer, 0);
}

}  // namespace outboard::frontend::cuda
