// Handlers of copies whose bytes travel over data connections, and of the opening of those.
#include "backend/cuda/copying/copy_order.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/relaxed_capture.hh"
#include "backend/cuda/session.hh"
#include "marshal/data_bodies.hh"

namespace outboard::backend {
namespace {

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
  std::unique_ptr<data_piece> piece = std::make_unique<staged_piece>(d, stage, block, body.size);
  if (code != CUDA_SUCCESS) return code;
  if (c.core.data().send(body.connection, body.number, piece, 0, body.pace)) return code;
  (void)piece->await();
  return CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

outcome ends::data_open(call& c, const marshal::data_open_body& body) {
  if (!well_formed(body)) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  if (c.header.context == 0) return outcome::answer(CUDA_ERROR_INVALID_CONTEXT);
  const auto reply = c.core.open_data_connections(body, c.header.context);
  if (!reply) return outcome::answer(CUDA_ERROR_OPERATING_SYSTEM);
  marshal::put_body(c.reply, *reply);
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::data_in(call& c, const marshal::data_in_body& body) {
  if (!known(body.how)) return outcome::malformed();
  const auto piece = c.core.data().take(c.header.context, body.number);
  if (!piece) return outcome::answer(CUDA_ERROR_UNKNOWN);
  CUstream asked = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, asked);
  if (code == CUDA_SUCCESS && piece->bytes().size() != body.size) code = CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const relaxed_capture relaxed(c.driver());
  const CUstream stream = stream_of(body.how, asked);
  const staging::block block = static_cast<staged_piece&>(*piece).release();
  code = copy_out_of(c, block, body.size, body.to, body.how, stream);
  if (code != CUDA_SUCCESS || body.more) return outcome::answer(code);
  return outcome::answer(finish_if_synchronous(c, body.how, stream));
}

/// The client hears of a failure where it waits for the bytes, and not once more.
outcome ends::data_out(call& c, const marshal::data_out_body& body) {
  if (!known(body.how) || body.size == 0 || body.size > marshal::max_data_piece) return outcome::malformed();
  const relaxed_capture relaxed(c.driver());
  const CUresult code = copy_and_send(c, body);
  std::unique_ptr<data_piece> none;
  const bool told = code != CUDA_SUCCESS && c.core.data().send(body.connection, body.number, none, code);
  return outcome::answer(told && !is_sticky(code) ? CUDA_SUCCESS : code);
}

}  // namespace outboard::backend
