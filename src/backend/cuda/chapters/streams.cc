// Handlers of the chapters stream and stream_memory: attributes, batches of memory operations.
#include <cstring>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/launch_decoding.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::backend::ends {

outcome cuStreamGetAttribute(call& c, const marshal::attribute_body& body) {
  const api::driver_table& d = c.driver();
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.subject, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  CUstreamAttrValue value{};
  const auto id = static_cast<CUstreamAttrID>(body.id);
  std::memcpy(&value, body.value.data(), sizeof value);
  // Streams have none of the others, and a later driver's may hold a pointer: neither set nor told.
  if (!is_plain_attribute(body.id)) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  if (body.set) {
    const auto set = body.per_thread ? d.cuStreamSetAttribute_ptsz : d.cuStreamSetAttribute;
    code = call_driver(set, stream, id, &value);
    if (code == CUDA_SUCCESS) c.session.keep_here("it has set attributes of streams");
    return outcome::answer(code);
  }
  std::memset(&value, 0, sizeof value);
  code =
      call_driver(body.per_thread ? d.cuStreamGetAttribute_ptsz : d.cuStreamGetAttribute, stream, id, &value);
  marshal::attribute_reply reply;
  std::memcpy(reply.value.data(), &value, sizeof value);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuStreamCopyAttributes(call& c, const marshal::graph_launch_body& body) {
  const api::driver_table& d = c.driver();
  CUstream to = nullptr, from = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, to);
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.exec, from);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  code = call_driver(body.per_thread ? d.cuStreamCopyAttributes_ptsz : d.cuStreamCopyAttributes, to, from);
  if (code == CUDA_SUCCESS) c.session.keep_here("it has set attributes of streams");
  return outcome::answer(code);
}

outcome cuStreamBatchMemOp_v2(call& c, const marshal::memory_operations_body& body) {
  constexpr std::size_t most = 256;
  const std::size_t bytes = body.operations.size();
  if (bytes % sizeof(CUstreamBatchMemOpParams) || bytes > most * sizeof(CUstreamBatchMemOpParams))
    return outcome::malformed();
  const api::driver_table& d = c.driver();
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  std::vector<CUstreamBatchMemOpParams> operations(bytes / sizeof(CUstreamBatchMemOpParams));
  if (bytes) std::memcpy(operations.data(), body.operations.data(), bytes);
  return outcome::answer(call_driver(body.per_thread ? d.cuStreamBatchMemOp_v2_ptsz : d.cuStreamBatchMemOp_v2,
                                     stream, static_cast<unsigned>(operations.size()), operations.data(),
                                     body.flags));
}

}  // namespace outboard::backend::ends
