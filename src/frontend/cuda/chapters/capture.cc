#include "frontend/cuda/chapters/capture.hh"

#include <algorithm>
#include <bit>
#include <set>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/graph_nodes.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/remote.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// Streams in which this process began a capture that has not ended; and, of every stream in a capture, the
/// dependency array that the program was last given: the driver keeps it until the next call on the stream.
struct open_captures {
  std::atomic<int> count{0};
  std::mutex mutex;  // guards what follows
  std::set<std::uint64_t> streams;
  std::map<std::uint64_t, std::uint64_t> into;  ///< graphs of the program that captures go into
  std::map<std::uint64_t, std::pair<std::vector<CUgraphNode>, std::vector<CUgraphEdgeData>>> given;
};

open_captures& captures() {
  static open_captures* const the_one =
      new open_captures;  // never destroyed: calls come from destructors after main too
  return *the_one;
}

/// A key for each stream: there is one legacy default stream, and a per-thread one for each thread.
std::uint64_t stream_key(const lane& own, CUstream stream, bool per_thread) {
  const std::uint64_t value = value_of(stream);
  if (value == 2 || (value == 0 && per_thread)) return (std::uint64_t{own.id} << 8) | 2;
  return value == 0 ? 1 : value;
}

void opened(std::uint64_t key) {
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  if (all.streams.insert(key).second) all.count.fetch_add(1, std::memory_order_relaxed);
}

void closed(std::uint64_t key) {
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  all.into.erase(key);
  if (all.streams.erase(key)) all.count.fetch_sub(1, std::memory_order_relaxed);
  if (all.streams.empty()) all.given.clear();
}

/// The graph that the program named when it began; 0: a new one.
std::uint64_t graph_of_capture(std::uint64_t key) {
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  const auto found = all.into.find(key);
  return found == all.into.end() ? 0 : found->second;
}

CUresult begin(lane& own, CUstream stream, CUstreamCaptureMode mode, bool per_thread) {
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult code = call<api::opcode::cuStreamBeginCapture_v2>(
      own, marshal::capture_body{.stream = value_of(stream), .mode = mode, .per_thread = per_thread});
  if (code == CUDA_SUCCESS) opened(stream_key(own, stream, per_thread));
  return code;
}

CUresult ask_status(lane& own, CUstream stream, bool per_thread, CUstreamCaptureStatus& status) {
  marshal::capture_reply reply;
  if (const CUresult code = call<api::opcode::cuStreamIsCapturing>(
          own, marshal::capture_body{.stream = value_of(stream), .per_thread = per_thread}, reply);
      code != CUDA_SUCCESS)
    return code;
  status = static_cast<CUstreamCaptureStatus>(reply.status);
  return CUDA_SUCCESS;
}

CUresult end(lane& own, CUstream stream, CUgraph* graph, bool per_thread) {
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = own.state().handles[api::handle_kind::graph];
  const std::uint64_t key = stream_key(own, stream, per_thread);
  const std::uint64_t there = graph_of_capture(key);
  const std::uint64_t made = there ? there : table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult code = call<api::opcode::cuStreamEndCapture>(
      own, marshal::capture_body{
               .stream = value_of(stream), .graph = made, .mode = there != 0, .per_thread = per_thread});
  if (code == CUDA_SUCCESS) {
    closed(key);
    if (graph) *graph = reinterpret_cast<CUgraph>(made);
    // Nobody can ever name it. (A program that captures into a graph has that graph already.)
    if (!graph && !there) ends::cuGraphDestroy(reinterpret_cast<CUgraph>(made));
    return code;
  }
  if (!there) table.release(made);
  if (graph && code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) *graph = nullptr;  // as the driver leaves it
  // Some failures end the capture and some do not: the driver knows.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (ask_status(own, stream, per_thread, status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
    closed(key);
  return code;
}

CUresult is_capturing(lane& own, CUstream stream, CUstreamCaptureStatus* status, bool per_thread) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (any_capture_open()) return ask_status(own, stream, per_thread, *status);
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

struct capture_outputs {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult capture_info(lane& own, CUstream stream, const capture_outputs& out, bool per_thread) {
  if (!out.status) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!any_capture_open()) return *out.status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  marshal::capture_reply reply;
  if (const CUresult code = call<api::opcode::cuStreamGetCaptureInfo_v2>(
          own, marshal::capture_body{.stream = value_of(stream), .per_thread = per_thread}, reply);
      code != CUDA_SUCCESS)
    return code;
  *out.status = static_cast<CUstreamCaptureStatus>(reply.status);
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  auto& [kept, kept_edges] = all.given[stream_key(own, stream, per_thread)];
  kept.clear();
  for (const std::uint64_t node : reply.dependencies) kept.push_back(reinterpret_cast<CUgraphNode>(node));
  kept_edges.assign(kept.size(), CUgraphEdgeData{});
  for (std::size_t i = 0; i < std::min(kept.size(), reply.edges.size()); ++i)
    kept_edges[i] = std::bit_cast<CUgraphEdgeData>(reply.edges[i]);
  if (out.id) *out.id = reply.id;
  if (out.graph) *out.graph = reinterpret_cast<CUgraph>(reply.graph);
  if (out.dependencies) *out.dependencies = kept.data();
  if (out.edges) *out.edges = kept_edges.data();
  if (out.count) *out.count = kept.size();
  return CUDA_SUCCESS;
}

struct node_list {
  const CUgraphNode* nodes;
  const CUgraphEdgeData* edges;
  std::size_t count;
};

CUresult put_nodes(const node_list& list, marshal::capture_nodes_body& body) {
  if ((list.count && !list.nodes) || list.count > marshal::max_graph_edges) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < list.count; ++i) {
    if (!node_ok(list.nodes[i])) return CUDA_ERROR_INVALID_VALUE;
    body.nodes.push_back(value_of(list.nodes[i]));
    if (list.edges) body.edges.push_back(std::bit_cast<std::uint64_t>(list.edges[i]));
  }
  return CUDA_SUCCESS;
}

CUresult begin_into(lane& own, CUstream stream, CUgraph graph, const node_list& list,
                    CUstreamCaptureMode mode, bool per_thread) {
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  marshal::capture_nodes_body body;
  body.stream = value_of(stream);
  body.graph = value_of(graph);
  body.mode = mode;
  body.per_thread = per_thread;
  if (const CUresult code = put_nodes(list, body); code != CUDA_SUCCESS) return code;
  const CUresult code = call<api::opcode::cuStreamBeginCaptureToGraph>(own, body);
  if (code != CUDA_SUCCESS) return code;
  opened(stream_key(own, stream, per_thread));
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  all.into[stream_key(own, stream, per_thread)] = value_of(graph);
  return code;
}

CUresult update(lane& own, CUstream stream, const node_list& list, unsigned flags, bool per_thread) {
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::capture_nodes_body body;
  body.stream = value_of(stream);
  body.mode = static_cast<std::int32_t>(flags);
  body.per_thread = per_thread;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = put_nodes(list, body); code != CUDA_SUCCESS) return code;
  return call<api::opcode::cuStreamUpdateCaptureDependencies_v2>(own, body);
}

bool is_mode(int mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

CUresult capture_refusal() {
  lane& own = this_lane();
  return call<api::opcode::cuThreadExchangeStreamCaptureMode>(
      own, marshal::capture_body{.mode = marshal::ask_capture});
}

bool stream_captures(lane& own, CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return any_capture_open() && ask_status(own, stream, per_thread, status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult refuse_captured(lane& own, CUstream stream, bool per_thread) {
  if (!stream_captures(own, stream, per_thread)) return CUDA_SUCCESS;
  // No captured stream may be asked this.
  return per_thread ? remote<api::opcode::cuStreamQuery_ptsz>(stream)
                    : remote<api::opcode::cuStreamQuery>(stream);
}

CUresult capture_copy(lane& own, const captured_copy& copy) {
  process& p = own.state();
  host_box box;
  box.base = static_cast<std::byte*>(copy.host);
  box.width = box.pitch = box.slice = copy.size;
  box.written = copy.to_host;
  const std::uint64_t id = p.functions.add(*p.connection.server(), box);
  const CUresult code = call<api::opcode::cuGraphAddMemcpyNode>(
      own, marshal::captured_copy_body{.address = copy.device,
                                       .id = id,
                                       .size = copy.size,
                                       .stream = value_of(copy.stream),
                                       .to_host = copy.to_host,
                                       .per_thread = copy.per_thread});
  if (code != CUDA_SUCCESS) p.functions.forget(id);
  return code;
}

CUresult capture_box(lane& own, const CUDA_MEMCPY3D& copy, CUstream stream, bool per_thread) {
  process& p = own.state();
  if (copies_on_host(own, copy)) {
    const std::uint64_t id = add_host_copy(own, copy);
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    p.connection.server()->expect_callbacks(1);
    return call<api::opcode::cuLaunchHostFunc>(
        own, marshal::host_function_body{.stream = value_of(stream), .id = id, .per_thread = per_thread});
  }
  marshal::captured_box_body body{.stream = value_of(stream), .per_thread = per_thread};
  std::vector<std::uint64_t> made;
  CUresult code = put_copy_node(own, copy, nullptr, body.copy, made);
  if (code == CUDA_SUCCESS) code = call<api::opcode::cuMemcpy3DAsync_v2>(own, body);
  if (code != CUDA_SUCCESS) {
    for (const std::uint64_t id : made) p.functions.forget(id);
  }
  return code;
}

bool any_capture_open() { return captures().count.load(std::memory_order_relaxed) != 0; }

namespace ends {

CUresult cuStreamBeginCapture(CUstream stream) {
  lane& own = this_lane();
  return begin(own, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  lane& own = this_lane();
  return begin(own, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, true);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  lane& own = this_lane();
  return is_mode(mode) ? begin(own, stream, mode, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  lane& own = this_lane();
  return is_mode(mode) ? begin(own, stream, mode, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  lane& own = this_lane();
  return end(own, stream, graph, false);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  lane& own = this_lane();
  return end(own, stream, graph, true);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  lane& own = this_lane();
  return is_capturing(own, stream, status, false);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  lane& own = this_lane();
  return is_capturing(own, stream, status, true);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id, graph, dependencies, nullptr, count}, false);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** dependencies,
                                        std::size_t* count) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id, graph, dependencies, nullptr, count}, true);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id}, false);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id}, true);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                                   std::size_t* count) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id, graph, nodes, edges, count}, false);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** nodes,
                                        const CUgraphEdgeData** edges, std::size_t* count) {
  lane& own = this_lane();
  return capture_info(own, stream, {status, id, graph, nodes, edges, count}, true);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* edges, std::size_t count,
                                     CUstreamCaptureMode mode) {
  lane& own = this_lane();
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return begin_into(own, stream, graph, {nodes, edges, count}, mode, false);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode) {
  lane& own = this_lane();
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return begin_into(own, stream, graph, {nodes, edges, count}, mode, true);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                           unsigned flags) {
  lane& own = this_lane();
  return update(own, stream, {nodes, nullptr, count}, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                                unsigned flags) {
  lane& own = this_lane();
  return update(own, stream, {nodes, nullptr, count}, flags, true);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData* edges, std::size_t count,
                                              unsigned flags) {
  lane& own = this_lane();
  return update(own, stream, {nodes, edges, count}, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* nodes,
                                                   const CUgraphEdgeData* edges, std::size_t count,
                                                   unsigned flags) {
  lane& own = this_lane();
  return update(own, stream, {nodes, edges, count}, flags, true);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  lane& own = this_lane();
  // Drivers take any number for a mode.
  if (!mode || static_cast<int>(*mode) == marshal::ask_capture) return CUDA_ERROR_INVALID_VALUE;
  const auto before = static_cast<CUstreamCaptureMode>(own.capture_mode);
  if (*mode != before) {
    if (const CUresult code =
            post<api::opcode::cuThreadExchangeStreamCaptureMode>(own, marshal::capture_body{.mode = *mode});
        code != CUDA_SUCCESS)
      return code;
    own.capture_mode = *mode;
  }
  *mode = before;
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
