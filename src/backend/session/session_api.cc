#include "backend/session/session_api.hh"

#include "backend/session/session_core.hh"

namespace outboard::backend {

/// As answer() for CUDA, without what only CUDA has: sticky errors, copies in flight by its driver. What
/// became of a post is the handler's to keep.
void session_core::answer_by_api(lane& own, lane& asking, const wire::frame_header& request, outcome what) {
  if (request.kind == wire::frame_kind::post) return;
  request_.api->before_reply();
  std::memcpy(own.reply.data(), &what.code, sizeof what.code);
  if (what.code != 0) own.reply.resize(sizeof what.code);
  if (request_.output) send_output();
  asking.answered.store(true);  // partner: deliver(), which may see the client's next request at once
  wire::frame_header reply;
  reply.kind = wire::frame_kind::reply;
  reply.opcode = request.opcode;
  reply.lane = request.lane;
  reply.ticket = request.ticket;
  send_behind(own.before_reply, reply, own.reply, {});
}

}  // namespace outboard::backend
