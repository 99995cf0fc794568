// Handlers of host functions and stream callbacks.
#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"

namespace outboard::backend {
namespace {

using marshal::errand;

CUresult enqueue(call& c, const marshal::host_function_body& body, CUstream stream,
                 host_calls::function* function) {
  if (body.callback) {
    const auto entry = body.per_thread ? c.driver().cuStreamAddCallback_ptsz : c.driver().cuStreamAddCallback;
    return entry ? entry(stream, host_calls::run_callback, function, 0) : CUDA_ERROR_NOT_SUPPORTED;
  }
  const auto entry = body.per_thread ? c.driver().cuLaunchHostFunc_ptsz : c.driver().cuLaunchHostFunc;
  return entry ? entry(stream, host_calls::run, function) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult launch(call& c, const marshal::host_function_body& body, CUstream stream) {
  host_calls& host = c.session.host();
  CUgraph graph = nullptr;
  // Where that is refused the call itself is: a capture may be lost by it.
  (void)graph_under_capture(c, stream, body.per_thread, graph);
  auto* function = host.make(body.id, graph == nullptr);
  const CUresult code = enqueue(c, body, stream, function);
  if (code != CUDA_SUCCESS) return delete function, code;
  if (!graph) return code;
  host.tell({errand::keep, body.id, 0, true, {}});
  keep_with_graph(c, graph, function);
  return code;
}

}  // namespace

CUresult graph_under_capture(call& c, CUstream stream, bool per_thread, CUgraph& graph) {
  graph = nullptr;
  const auto entry =
      per_thread ? c.driver().cuStreamGetCaptureInfo_v2_ptsz : c.driver().cuStreamGetCaptureInfo_v2;
  if (!entry) return CUDA_SUCCESS;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph found = nullptr;
  const CUresult code = entry(stream, &status, nullptr, &found, nullptr, nullptr);
  if (code == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) graph = found;
  return code;
}

outcome ends::cuLaunchHostFunc(call& c, const marshal::host_function_body& body) {
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code == CUDA_SUCCESS) code = launch(c, body, stream);
  if (code != CUDA_SUCCESS) c.session.host().tell({errand::forget, body.id, 0, true, {}});
  return outcome::answer(code);
}

}  // namespace outboard::backend
