// Chapters stream and stream_memory, hand-written: attributes of streams and batches of memory operations.
#include "frontend/cuda/attribute.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned most_operations = 256;

CUresult attribute(lane& own, CUstream stream, CUstreamAttrID id, CUstreamAttrValue* out,
                   const CUstreamAttrValue* in, bool per_thread) {
  if (!out && !in) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::attribute_body about;
  about.subject = value_of(stream);
  about.id = static_cast<std::uint32_t>(id);
  about.per_thread = per_thread;
  return exchange_attribute(own, api::opcode::cuStreamGetAttribute, about, out, in);
}

CUresult copy_attributes(lane& own, CUstream to, CUstream from, bool per_thread) {
  if (!stream_ok(to) || !stream_ok(from)) return CUDA_ERROR_INVALID_HANDLE;
  request_of<api::opcode::cuStreamCopyAttributes> r(
      own, marshal::graph_launch_body{value_of(from), value_of(to), per_thread});
  return r.call();
}

CUresult operate(lane& own, CUstream stream, unsigned count, const CUstreamBatchMemOpParams* operations,
                 unsigned flags, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (count > most_operations || (count && !operations)) return CUDA_ERROR_INVALID_VALUE;
  marshal::memory_operations_body body{value_of(stream), flags, per_thread, {}};
  const auto* first = reinterpret_cast<const std::uint8_t*>(operations);
  body.operations.assign(first, first + count * sizeof *operations);
  request_of<api::opcode::cuStreamBatchMemOp_v2> r(own, body);
  return r.call();
}

}  // namespace

namespace ends {

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  OUTBOARD_GATE(cuStreamGetAttribute);
  return attribute(own, stream, id, value, nullptr, false);
}
CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  OUTBOARD_GATE(cuStreamGetAttribute_ptsz);
  return attribute(own, stream, id, value, nullptr, true);
}
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  OUTBOARD_GATE(cuStreamSetAttribute);
  return attribute(own, stream, id, nullptr, value, false);
}
CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  OUTBOARD_GATE(cuStreamSetAttribute_ptsz);
  return attribute(own, stream, id, nullptr, value, true);
}
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  OUTBOARD_GATE(cuStreamCopyAttributes);
  return copy_attributes(own, to, from, false);
}
CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
  OUTBOARD_GATE(cuStreamCopyAttributes_ptsz);
  return copy_attributes(own, to, from, true);
}

#define OUTBOARD_BATCH(symbol, per_thread)                                                                 \
  CUresult symbol(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) { \
    OUTBOARD_GATE(symbol);                                                                                 \
    return operate(own, stream, count, operations, flags, per_thread);                                     \
  }
OUTBOARD_BATCH(cuStreamBatchMemOp, false)
OUTBOARD_BATCH(cuStreamBatchMemOp_ptsz, true)
OUTBOARD_BATCH(cuStreamBatchMemOp_v2, false)
OUTBOARD_BATCH(cuStreamBatchMemOp_v2_ptsz, true)
#undef OUTBOARD_BATCH

}  // namespace ends
}  // namespace outboard::frontend::cuda
