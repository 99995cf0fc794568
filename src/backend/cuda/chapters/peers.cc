// Handlers of the chapter peer: a device may use another's memory. Blocks of the window are physical memory
// mapped by us, which the driver's own peer access does not cover: they are opened one by one, now and when
// they are made.
#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/peer_access.hh"

namespace outboard::backend::ends {
namespace {

CUresult resolve(call& c, const marshal::peer_body& body, CUcontext& peer, CUdevice& own) {
  if (c.refused != CUDA_SUCCESS) return c.refused;
  const CUresult code = c.objects().resolve(body.context, peer);
  return code == CUDA_SUCCESS ? c.driver().cuCtxGetDevice(&own) : CUDA_ERROR_INVALID_CONTEXT;
}

/// Copies ask before each: once is enough for a session that is made again.
bool is_recorded(call& c) {
  const server_object* context = c.objects().at(c.header.context);
  const record made = c.as_record();
  return context && std::ranges::any_of(context->records, [&](const record& known) {
           return known.opcode == made.opcode && known.payload == made.payload;
         });
}

}  // namespace

outcome cuCtxEnablePeerAccess(call& c, const marshal::peer_body& body) {
  CUcontext peer = nullptr;
  CUdevice own = 0;
  CUresult code = resolve(c, body, peer, own);
  const bool for_copies = body.flags == marshal::peer_access_for_copies;
  if (code == CUDA_SUCCESS && !for_copies)
    code = call_driver(c.driver().cuCtxEnablePeerAccess, peer, body.flags);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  code = c.session.memory().open_to_peer(body.device, own, c.header.context);
  if (code != CUDA_SUCCESS) {
    if (!for_copies) call_driver(c.driver().cuCtxDisablePeerAccess, peer);
    return outcome::answer(code);
  }
  if (!for_copies || !is_recorded(c)) c.objects().amend(c.header.context, c.as_record());
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
