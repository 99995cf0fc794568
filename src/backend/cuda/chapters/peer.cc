// Handlers of the chapter peer: a device may use another's memory. Blocks of the window are physical memory
// mapped by us, which the driver's own peer access does not cover: they are opened one by one, now and when
// they are made.
#include "backend/cuda/cuda_session.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"

namespace outboard::backend::ends {
namespace {

CUresult resolve(call& c, const marshal::peer_body& body, CUcontext& peer, CUdevice& own) {
  if (c.refused != CUDA_SUCCESS) return c.refused;
  const CUresult code = c.objects().resolve(body.context, peer);
  return code == CUDA_SUCCESS ? c.driver().cuCtxGetDevice(&own) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

outcome cuCtxEnablePeerAccess(call& c, const marshal::peer_body& body) {
  CUcontext peer = nullptr;
  CUdevice own = 0;
  CUresult code = resolve(c, body, peer, own);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuCtxEnablePeerAccess, peer, body.flags);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  code = c.session.memory().open_to_peer(body.device, own, c.header.context);
  if (code != CUDA_SUCCESS) {
    call_driver(c.driver().cuCtxDisablePeerAccess, peer);
    return outcome::answer(code);
  }
  c.objects().amend(c.header.context, c.as_record());
  return outcome::answer(code);
}

outcome cuCtxDisablePeerAccess(call& c, const marshal::peer_body& body) {
  CUcontext peer = nullptr;
  CUdevice own = 0;
  CUresult code = resolve(c, body, peer, own);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuCtxDisablePeerAccess, peer);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.session.memory().close_to_peer(body.device, own, c.header.context);
  c.objects().forget_change(c.header.context, static_cast<std::uint32_t>(api::opcode::cuCtxEnablePeerAccess),
                            body.context);
  return outcome::answer(code);
}

}  // namespace outboard::backend::ends
