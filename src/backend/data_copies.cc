// Handlers of copies whose bytes travel over data connections, and of the opening of those.
#include "backend/copy_order.hh"
#include "backend/ends.hh"
#include "backend/relaxed_capture.hh"
#include "backend/session_core.hh"
#include "marshal/data_bodies.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t most_opened = std::size_t{2} * most_data_connections;

/// Copies to a block and has it sent when that is done.
CUresult copy_and_send(call& c, const marshal::data_out_body& body) {
  CUstream asked = nullptr;
  if (c.refused != CUDA_SUCCESS) return c.refused;
  if (const CUresult code = c.objects().resolve_stream(body.stream, asked); code != CUDA_SUCCESS) return code;
  const api::driver_table& d = c.driver();
  const bool per_thread = marshal::per_thread(body.how);
  const CUstream stream = stream_of(body.how, asked);
  staging& stage = c.session.stage();
  staging::block block = stage.take(body.size, c.header.context);
  if (!block.data) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult code = (per_thread ? d.cuMemcpyDtoHAsync_v2_ptsz : d.cuMemcpyDtoHAsync_v2)(block.data, body.from,
                                                                                      body.size, stream);
  if (code == CUDA_SUCCESS && !block.done) code = d.cuEventCreate(&block.done, CU_EVENT_DISABLE_TIMING);
  if (code == CUDA_SUCCESS) code = (per_thread ? d.cuEventRecord_ptsz : d.cuEventRecord)(block.done, stream);
  if (code == CUDA_SUCCESS &&
      c.session.data().send(body.connection, body.number, block, body.size, code, body.pace))
    return code;
  if (code == CUDA_SUCCESS) {
    d.cuEventSynchronize(block.done);
    code = CUDA_ERROR_INVALID_HANDLE;
  }
  stage.give_back(block);
  return code;
}

}  // namespace

outcome ends::data_open(call& c) {
  const auto body = marshal::take_body<marshal::data_open_body>(c.body);
  if (!c.body.finished() || body.tokens.size() > most_opened || body.inward > body.tokens.size())
    return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  if (c.header.context == 0) return outcome::answer(CUDA_ERROR_INVALID_CONTEXT);
  marshal::data_open_reply reply;
  const std::uint64_t set = c.session.data().begin_set();
  for (std::size_t i = 0; i < body.tokens.size(); ++i) {
    auto link = c.session.take_data_connection(body.tokens[i]);
    if (!link) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
    if (i < body.inward) {
      if (!c.session.data().add_inward(std::move(link), c.header.context, set))
        return outcome::answer(CUDA_ERROR_OPERATING_SYSTEM);
      continue;
    }
    const auto number = c.session.data().add_outward(
        std::move(link), c.header.context, set,
        body.later ? body.later + static_cast<std::uint32_t>(i) - body.inward : 0);
    if (!number) return outcome::answer(CUDA_ERROR_OPERATING_SYSTEM);
    reply.outward.push_back(*number);
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::data_in(call& c) {
  const auto body = marshal::take_body<marshal::data_in_body>(c.body);
  if (!c.body.finished() || !known(body.how)) return outcome::malformed();
  const data_connections::arrival piece = c.session.data().take(c.header.context, body.number);
  if (!piece.block.data) return outcome::answer(CUDA_ERROR_UNKNOWN);
  CUstream asked = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, asked);
  if (code == CUDA_SUCCESS && piece.size != body.size) code = CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) {
    c.session.stage().give_back(piece.block);
    return outcome::answer(code);
  }
  const relaxed_capture relaxed(c.driver());
  const CUstream stream = stream_of(body.how, asked);
  code = copy_out_of(c, piece.block, piece.size, body.to, body.how, stream);
  if (code != CUDA_SUCCESS || body.more) return outcome::answer(code);
  return outcome::answer(finish_if_synchronous(c, body.how, stream));
}

/// The client hears of a failure where it waits for the bytes, and not once more.
outcome ends::data_out(call& c) {
  const auto body = marshal::take_body<marshal::data_out_body>(c.body);
  if (!c.body.finished() || !known(body.how) || body.size == 0 || body.size > marshal::max_data_piece)
    return outcome::malformed();
  const relaxed_capture relaxed(c.driver());
  const CUresult code = copy_and_send(c, body);
  const bool told = code != CUDA_SUCCESS && c.session.data().send(body.connection, body.number, {}, 0, code);
  return outcome::answer(told && !is_sticky(code) ? CUDA_SUCCESS : code);
}

}  // namespace outboard::backend
