#include "backend/driver_call.hh"
#include "backend/ends.hh"

namespace outboard::backend {
namespace {

/// A graph of a million nodes is real; a reply must stay below a frame.
constexpr std::size_t most_nodes = 1 << 20;

bool take_stream(call& c, marshal::capture_body& body, CUstream& stream, outcome& failed) {
  if (!take_all(c, body)) return failed = outcome::malformed(), false;
  failed = outcome::answer(c.refused != CUDA_SUCCESS ? c.refused
                                                     : c.objects().resolve_stream(body.stream, stream));
  return failed.code == CUDA_SUCCESS;
}

}  // namespace

namespace ends {

outcome cuStreamBeginCapture_v2(call& c) {
  marshal::capture_body body;
  CUstream stream = nullptr;
  outcome failed = outcome::malformed();
  if (!take_stream(c, body, stream, failed)) return failed;
  const auto entry =
      body.per_thread ? c.driver().cuStreamBeginCapture_v2_ptsz : c.driver().cuStreamBeginCapture_v2;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  return outcome::answer(entry(stream, static_cast<CUstreamCaptureMode>(body.mode)));
}

outcome cuStreamEndCapture(call& c) {
  marshal::capture_body body;
  CUstream stream = nullptr;
  outcome failed = outcome::malformed();
  if (!take_stream(c, body, stream, failed)) return failed;
  const auto entry = body.per_thread ? c.driver().cuStreamEndCapture_ptsz : c.driver().cuStreamEndCapture;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUgraph graph = nullptr;
  const CUresult code = entry(stream, &graph);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  if (!graph) return outcome::answer(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  return c.objects().create(body.graph, graph, c.as_record()) ? outcome::answer(code) : outcome::malformed();
}

outcome cuStreamIsCapturing(call& c) {
  marshal::capture_body body;
  CUstream stream = nullptr;
  outcome failed = outcome::malformed();
  if (!take_stream(c, body, stream, failed)) return failed;
  const auto entry = body.per_thread ? c.driver().cuStreamIsCapturing_ptsz : c.driver().cuStreamIsCapturing;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = entry(stream, &status);
  marshal::capture_reply reply;
  reply.status = static_cast<std::int32_t>(status);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuStreamGetCaptureInfo_v2(call& c) {
  marshal::capture_body body;
  CUstream stream = nullptr;
  outcome failed = outcome::malformed();
  if (!take_stream(c, body, stream, failed)) return failed;
  const auto entry =
      body.per_thread ? c.driver().cuStreamGetCaptureInfo_v2_ptsz : c.driver().cuStreamGetCaptureInfo_v2;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  const CUresult code = entry(stream, &status, &id, &graph, &nodes, &count);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  marshal::capture_reply reply;
  reply.status = static_cast<std::int32_t>(status);
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (count > most_nodes) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
    reply.id = id;
    if (graph) reply.graph = c.objects().mint(api::handle_kind::graph, graph);
    for (std::size_t i = 0; i < count; ++i) {
      reply.dependencies.push_back(c.objects().mint(api::handle_kind::graph_node, nodes[i]));
    }
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuThreadExchangeStreamCaptureMode(call& c) {
  marshal::capture_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto mode = static_cast<CUstreamCaptureMode>(body.mode);
  return outcome::answer(call_driver(c.driver().cuThreadExchangeStreamCaptureMode, &mode));
}

}  // namespace ends
}  // namespace outboard::backend
