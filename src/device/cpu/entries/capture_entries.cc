// Entries of the chapter stream that capture.
#include "device/cpu/graph/graph_handles.hh"

namespace outboard::device::cpu {
namespace {

/// Calls body(queue) with the stream behind the handle and the graphs locked.
template <CUresult (*Find)(const context_ptr&, CUstream, bool, stream_ptr&) = stream_of, class Body>
CUresult on_stream(CUstream handle, bool per_thread, Body&& body) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = Find(c, handle, per_thread, s); r != CUDA_SUCCESS) return r;
    const std::lock_guard lock(here().graphs_mutex);
    return body(s);
  });
}

template <bool PerThread>
CUresult begin(CUstream handle, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  return on_stream(handle, PerThread,
                   [&](const stream_ptr& s) { return capture_begin(s, mode, nullptr, {}); });
}
template <bool PerThread>
CUresult begin_global(CUstream handle) {
  return begin<PerThread>(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

template <bool PerThread>
CUresult begin_into(CUstream handle, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                    std::size_t count, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  return on_stream(handle, PerThread, [&](const stream_ptr& s) -> CUresult {
    graph_ptr into = find_graph(graph);
    std::vector<graph_node*> tails;
    if (into == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = find_nodes(*into, nodes, count, tails); r != CUDA_SUCCESS) return r;
    if (!plain_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    return capture_begin(s, mode, std::move(into), tails);
  });
}

template <bool PerThread>
CUresult end(CUstream handle, CUgraph* out) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s) -> CUresult {
    const capture_ptr c = capture_of(*s);
    graph_ptr graph;
    const CUresult r = capture_end(*s, graph);
    if (out == nullptr) {  // a new graph that nobody can name
      if (r == CUDA_SUCCESS && !c->into_existing) here().graphs.remove(graph->handle);
      return r;
    }
    *out = graph != nullptr ? reinterpret_cast<CUgraph>(graph->handle) : nullptr;
    return r;
  });
}

CUstreamCaptureStatus status_of(const capture_ptr& c) {
  if (c == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return c->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

template <bool PerThread>
CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return on_stream<stream_to_ask>(
      handle, PerThread, [&](const stream_ptr& s) { return *out = status_of(capture_of(*s)), CUDA_SUCCESS; });
}

struct info_outputs {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult info(CUstream handle, bool per_thread, const info_outputs& out) {
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return on_stream<stream_to_ask>(handle, per_thread, [&](const stream_ptr& s) {
    const capture_ptr c = capture_of(*s);
    *out.status = status_of(c);
    if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    stream_capture::member& member = c->members.at(s.get());
    member.told.clear();
    for (const graph_node* node : member.tails) member.told.push_back(handle_of(*node));
    member.told_edges.assign(member.told.size(), CUgraphEdgeData{});
    if (out.id != nullptr) *out.id = c->id;
    if (out.graph != nullptr) *out.graph = reinterpret_cast<CUgraph>(c->graph->handle);
    if (out.nodes != nullptr) *out.nodes = member.told.data();
    if (out.edges != nullptr) *out.edges = member.told_edges.data();
    if (out.count != nullptr) *out.count = member.told.size();
    return CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult info_v1(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return info(s, PerThread, {status, id});
}
template <bool PerThread>
CUresult info_v2(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                 const CUgraphNode** nodes, std::size_t* count) {
  return info(s, PerThread, {status, id, graph, nodes, nullptr, count});
}
template <bool PerThread>
CUresult info_v3(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                 const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  return info(s, PerThread, {status, id, graph, nodes, edges, count});
}

CUresult update(CUstream handle, bool per_thread, CUgraphNode* nodes, const CUgraphEdgeData* data,
                std::size_t count, unsigned flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  return on_stream(handle, per_thread, [&](const stream_ptr& s) -> CUresult {
    const capture_ptr c = capture_of(*s);
    if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (c->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<graph_node*> wanted;
    if (const CUresult r = find_nodes(*c->graph, nodes, count, wanted); r != CUDA_SUCCESS) return r;
    if (!plain_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<graph_node*>& tails = c->members.at(s.get()).tails;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) tails.clear();
    for (graph_node* node : wanted) {
      if (std::ranges::find(tails, node) == tails.end()) tails.push_back(node);
    }
    return CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult update_v1(CUstream s, CUgraphNode* nodes, std::size_t count, unsigned flags) {
  return update(s, PerThread, nodes, nullptr, count, flags);
}
template <bool PerThread>
CUresult update_v2(CUstream s, CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                   unsigned flags) {
  return update(s, PerThread, nodes, data, count, flags);
}

}  // namespace

void fill_capture_entries(api::driver_table& t) {
  t.cuStreamBeginCapture = begin_global<false>;
  t.cuStreamBeginCapture_ptsz = begin_global<true>;
  t.cuStreamBeginCapture_v2 = begin<false>;
  t.cuStreamBeginCapture_v2_ptsz = begin<true>;
  t.cuStreamBeginCaptureToGraph = begin_into<false>;
  t.cuStreamBeginCaptureToGraph_ptsz = begin_into<true>;
  t.cuStreamEndCapture = end<false>;
  t.cuStreamEndCapture_ptsz = end<true>;
  t.cuStreamIsCapturing = is_capturing<false>;
  t.cuStreamIsCapturing_ptsz = is_capturing<true>;
  t.cuStreamGetCaptureInfo = info_v1<false>;
  t.cuStreamGetCaptureInfo_ptsz = info_v1<true>;
  t.cuStreamGetCaptureInfo_v2 = info_v2<false>;
  t.cuStreamGetCaptureInfo_v2_ptsz = info_v2<true>;
  t.cuStreamGetCaptureInfo_v3 = info_v3<false>;
  t.cuStreamGetCaptureInfo_v3_ptsz = info_v3<true>;
  t.cuStreamUpdateCaptureDependencies = update_v1<false>;
  t.cuStreamUpdateCaptureDependencies_ptsz = update_v1<true>;
  t.cuStreamUpdateCaptureDependencies_v2 = update_v2<false>;
  t.cuStreamUpdateCaptureDependencies_v2_ptsz = update_v2<true>;
}

}  // namespace outboard::device::cpu
