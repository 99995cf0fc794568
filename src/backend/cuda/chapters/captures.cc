#include <bit>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

/// A graph of a million nodes is real; a reply must stay below a frame.
constexpr std::size_t most_nodes = 1 << 20;

CUresult stream_of(call& c, const marshal::capture_body& body, CUstream& stream) {
  return c.refused != CUDA_SUCCESS ? c.refused : c.objects().resolve_stream(body.stream, stream);
}

/// An end that fails may leave the capture open: only the driver knows.
void note_end(call& c, CUstream stream, bool per_thread) {
  const auto ask = per_thread ? c.driver().cuStreamIsCapturing_ptsz : c.driver().cuStreamIsCapturing;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (call_driver(ask, stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
    c.session.captures().ended(stream);
}

/// Something harmless that captures forbid.
CUresult try_unsafe(call& c) {
  const api::driver_table& d = c.driver();
  CUevent event = nullptr;
  if (const CUresult code = call_driver(d.cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
      code != CUDA_SUCCESS)
    return code;
  const CUresult code = call_driver(d.cuEventQuery, event);
  call_driver(d.cuEventDestroy_v2, event);
  return code;
}

}  // namespace

namespace ends {

outcome cuStreamBeginCapture_v2(call& c, const marshal::capture_body& body) {
  CUstream stream = nullptr;
  if (const CUresult code = stream_of(c, body, stream); code != CUDA_SUCCESS) return outcome::answer(code);
  const auto entry =
      body.per_thread ? c.driver().cuStreamBeginCapture_v2_ptsz : c.driver().cuStreamBeginCapture_v2;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  const CUresult code = entry(stream, static_cast<CUstreamCaptureMode>(body.mode));
  if (code == CUDA_SUCCESS) c.session.captures().began(stream);
  return outcome::answer(code);
}

outcome cuStreamEndCapture(call& c, const marshal::capture_body& body) {
  CUstream stream = nullptr;
  if (const CUresult code = stream_of(c, body, stream); code != CUDA_SUCCESS) return outcome::answer(code);
  const auto entry = body.per_thread ? c.driver().cuStreamEndCapture_ptsz : c.driver().cuStreamEndCapture;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUgraph graph = nullptr;
  const CUresult code = entry(stream, &graph);
  note_end(c, stream, body.per_thread);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  if (!graph) return outcome::answer(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (body.mode != 0) return outcome::answer(code);  // into a graph that the client has already
  return c.objects().create(body.graph, graph, c.as_record()) ? outcome::answer(code) : outcome::malformed();
}

outcome cuStreamIsCapturing(call& c, const marshal::capture_body& body) {
  CUstream stream = nullptr;
  if (const CUresult code = stream_of(c, body, stream); code != CUDA_SUCCESS) return outcome::answer(code);
  const auto entry = body.per_thread ? c.driver().cuStreamIsCapturing_ptsz : c.driver().cuStreamIsCapturing;
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code = entry(stream, &status);
  marshal::capture_reply reply;
  reply.status = static_cast<std::int32_t>(status);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuStreamGetCaptureInfo_v2(call& c, const marshal::capture_body& body) {
  CUstream stream = nullptr;
  if (const CUresult code = stream_of(c, body, stream); code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  const auto with_edges = body.per_thread ? d.cuStreamGetCaptureInfo_v3_ptsz : d.cuStreamGetCaptureInfo_v3;
  const auto plain = body.per_thread ? d.cuStreamGetCaptureInfo_v2_ptsz : d.cuStreamGetCaptureInfo_v2;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  const CUresult code = with_edges ? with_edges(stream, &status, &id, &graph, &nodes, &edges, &count)
                                   : call_driver(plain, stream, &status, &id, &graph, &nodes, &count);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  marshal::capture_reply reply;
  reply.status = static_cast<std::int32_t>(status);
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (count > most_nodes) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
    reply.id = id;
    reply.graph = name_graph(c, graph, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      reply.dependencies.push_back(name_node(c, nodes[i], graph));
      if (edges) reply.edges.push_back(std::bit_cast<std::uint64_t>(edges[i]));
    }
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuStreamBeginCaptureToGraph(call& c, const marshal::capture_nodes_body& body) {
  if (!body.edges.empty() && body.edges.size() != body.nodes.size()) return outcome::malformed();
  const auto entry =
      body.per_thread ? c.driver().cuStreamBeginCaptureToGraph_ptsz : c.driver().cuStreamBeginCaptureToGraph;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> nodes;
  const auto edges = edge_data(body.edges);
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code == CUDA_SUCCESS) code = find(c, body.graph, graph);
  if (code == CUDA_SUCCESS) code = find_all(c, body.nodes, nodes);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  code = call_driver(entry, stream, graph, nodes.data(), edges.empty() ? nullptr : edges.data(), nodes.size(),
                     static_cast<CUstreamCaptureMode>(body.mode));
  if (code == CUDA_SUCCESS) c.session.captures().began(stream);
  return outcome::answer(code);
}

outcome cuStreamUpdateCaptureDependencies_v2(call& c, const marshal::capture_nodes_body& body) {
  if (!body.edges.empty() && body.edges.size() != body.nodes.size()) return outcome::malformed();
  const api::driver_table& d = c.driver();
  const auto with_edges =
      body.per_thread ? d.cuStreamUpdateCaptureDependencies_v2_ptsz : d.cuStreamUpdateCaptureDependencies_v2;
  const auto plain =
      body.per_thread ? d.cuStreamUpdateCaptureDependencies_ptsz : d.cuStreamUpdateCaptureDependencies;
  CUstream stream = nullptr;
  std::vector<CUgraphNode> nodes;
  const auto edges = edge_data(body.edges);
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code == CUDA_SUCCESS) code = find_all(c, body.nodes, nodes);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const auto flags = static_cast<unsigned>(body.mode);
  if (!edges.empty() || !plain)
    return outcome::answer(call_driver(with_edges, stream, nodes.data(),
                                       edges.empty() ? nullptr : edges.data(), nodes.size(), flags));
  return outcome::answer(plain(stream, nodes.data(), nodes.size(), flags));
}

/// A copy of a stream under capture: a node that works on a block of ours (graph_copies.hh).
outcome cuGraphAddMemcpyNode(call& c, const marshal::captured_copy_body& body) {
  const api::driver_table& d = c.driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code == CUDA_SUCCESS) code = graph_under_capture(c, stream, body.per_thread, graph);
  if (code == CUDA_SUCCESS && !graph) code = CUDA_ERROR_ILLEGAL_STATE;  // ended by another thread meanwhile
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const auto block = c.session.captured_copies().make({body.id, body.size, body.size, c.header.context});
  if (!block) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  if (body.to_host) {
    const auto copy = body.per_thread ? d.cuMemcpyDtoHAsync_v2_ptsz : d.cuMemcpyDtoHAsync_v2;
    code = call_driver(copy, block->data, body.address, body.size, stream);
  } else {
    const auto copy = body.per_thread ? d.cuMemcpyHtoDAsync_v2_ptsz : d.cuMemcpyHtoDAsync_v2;
    code = call_driver(copy, body.address, block->data, body.size, stream);
  }
  if (code == CUDA_SUCCESS) {
    c.session.captured_copies().hold(graph, *block);
  } else {
    c.session.captured_copies().release(*block);
  }
  return outcome::answer(code);
}

/// The same of any shape.
outcome cuMemcpy3DAsync_v2(call& c, const marshal::captured_box_body& body) {
  if (!is_copy(body.node)) return outcome::malformed();
  const api::driver_table& d = c.driver();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code == CUDA_SUCCESS) code = graph_under_capture(c, stream, body.per_thread, graph);
  if (code == CUDA_SUCCESS && !graph) code = CUDA_ERROR_ILLEGAL_STATE;  // ended by another thread meanwhile
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  CUDA_MEMCPY3D copy{};
  copy_blocks blocks;
  code = native_copy(c, body.node, copy, blocks);
  if (code == CUDA_SUCCESS)
    code = call_driver(body.per_thread ? d.cuMemcpy3DAsync_v2_ptsz : d.cuMemcpy3DAsync_v2, &copy, stream);
  for (const boxed_bytes& b : blocks.all()) {
    if (code == CUDA_SUCCESS) {
      c.session.captured_copies().hold(graph, b);
    } else {
      c.session.captured_copies().release(b);
    }
  }
  return outcome::answer(code);
}

outcome cuThreadExchangeStreamCaptureMode(call& c, const marshal::capture_body& body) {
  if (body.mode == marshal::ask_capture)
    return outcome::answer(c.refused != CUDA_SUCCESS ? c.refused : try_unsafe(c));
  auto mode = static_cast<CUstreamCaptureMode>(body.mode);
  const CUresult code = call_driver(c.driver().cuThreadExchangeStreamCaptureMode, &mode);
  if (code == CUDA_SUCCESS) c.own.capture_mode = body.mode;
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
