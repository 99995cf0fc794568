#include "frontend/cuda/chapters/capture.hh"

#include <algorithm>
#include <bit>
#include <chrono>
#include <future>
#include <set>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/graph_nodes.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/remote.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// Streams in which this process began a capture that has not ended; and, of every stream in a capture, the
/// dependency array that the program was last told: the driver keeps it until the next call on the stream.
struct open_captures {
  std::atomic<int> count{0};
  std::mutex mutex;  // guards what follows
  std::set<std::uint64_t> streams;
  std::map<std::uint64_t, std::uint64_t> into;  ///< graphs of the program that captures go into
  std::map<std::uint64_t, std::pair<std::vector<CUgraphNode>, std::vector<CUgraphEdgeData>>> told;
};

open_captures& captures() {
  static open_captures* const the_one = new open_captures;  // never destroyed: see process::instance()
  return *the_one;
}

/// Default streams told apart: the legacy one is one, the per-thread ones are a thread's.
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
  if (all.streams.empty()) all.told.clear();
}

/// The graph that the program named when it began; 0: a new one.
std::uint64_t graph_of_capture(std::uint64_t key) {
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  const auto found = all.into.find(key);
  return found == all.into.end() ? 0 : found->second;
}

CUresult begin(lane& own, CUstream stream, CUstreamCaptureMode mode, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  request_of<api::opcode::cuStreamBeginCapture_v2> r(
      own, marshal::capture_body{value_of(stream), 0, mode, per_thread});
  const CUresult code = r.call();
  if (code == CUDA_SUCCESS) opened(stream_key(own, stream, per_thread));
  return code;
}

CUresult ask_status(lane& own, CUstream stream, bool per_thread, CUstreamCaptureStatus& status) {
  request_of<api::opcode::cuStreamIsCapturing> r(own,
                                                 marshal::capture_body{value_of(stream), 0, 0, per_thread});
  marshal::capture_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  status = static_cast<CUstreamCaptureStatus>(reply.status);
  return CUDA_SUCCESS;
}

CUresult end(lane& own, CUstream stream, CUgraph* graph, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = process::instance().objects().handles(api::handle_kind::graph);
  const std::uint64_t key = stream_key(own, stream, per_thread);
  const std::uint64_t there = graph_of_capture(key);
  const std::uint64_t made = there ? there : table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuStreamEndCapture> r(
      own, marshal::capture_body{value_of(stream), made, there != 0, per_thread});
  const CUresult code = r.call();
  if (code == CUDA_SUCCESS) {
    closed(key);
    if (graph) *graph = reinterpret_cast<CUgraph>(made);
    // Nobody can ever name it. (Who captured into a graph has it already.)
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
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
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
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!any_capture_open()) return *out.status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  request_of<api::opcode::cuStreamGetCaptureInfo_v2> r(
      own, marshal::capture_body{value_of(stream), 0, 0, per_thread});
  marshal::capture_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  *out.status = static_cast<CUstreamCaptureStatus>(reply.status);
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  auto& [kept, kept_edges] = all.told[stream_key(own, stream, per_thread)];
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
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  marshal::capture_nodes_body body;
  body.stream = value_of(stream);
  body.graph = value_of(graph);
  body.mode = mode;
  body.per_thread = per_thread;
  if (const CUresult code = put_nodes(list, body); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuStreamBeginCaptureToGraph> r(own, body);
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS) return code;
  opened(stream_key(own, stream, per_thread));
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  all.into[stream_key(own, stream, per_thread)] = value_of(graph);
  return code;
}

CUresult update(lane& own, CUstream stream, const node_list& list, unsigned flags, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::capture_nodes_body body;
  body.stream = value_of(stream);
  body.mode = static_cast<std::int32_t>(flags);
  body.per_thread = per_thread;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = put_nodes(list, body); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuStreamUpdateCaptureDependencies_v2> r(own, body);
  return r.call();
}

CUresult run_in_stream(lane& own, std::uint64_t function, CUstream stream, bool per_thread) {
  process::instance().server()->expect_callbacks(1);
  request_of<api::opcode::cuLaunchHostFunc> r(
      own, marshal::host_function_body{value_of(stream), function, per_thread, false});
  return r.call();
}

bool is_mode(int mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

CUresult capture_refusal() {
  lane& own = this_lane();
  request_of<api::opcode::cuThreadExchangeStreamCaptureMode> r(
      own, marshal::capture_body{0, 0, marshal::ask_capture, false});
  return r.call();
}

bool stream_captures(lane& own, CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return any_capture_open() && ask_status(own, stream, per_thread, status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult refuse_captured(lane& own, CUstream stream, bool per_thread) {
  if (!stream_captures(own, stream, per_thread)) return CUDA_SUCCESS;
  // The question that no captured stream bears.
  return per_thread ? remote<api::opcode::cuStreamQuery_ptsz>(stream)
                    : remote<api::opcode::cuStreamQuery>(stream);
}

CUresult capture_copy(lane& own, const captured_copy& copy) {
  process& p = process::instance();
  host_box box;
  box.base = static_cast<std::byte*>(copy.host);
  box.width = box.pitch = box.slice = copy.size;
  const std::uint64_t id = p.functions().add(*p.server(), box);
  request_of<api::opcode::cuGraphAddMemcpyNode> r(
      own, marshal::captured_copy_body{copy.device, id, copy.size, value_of(copy.stream), copy.to_host,
                                       copy.per_thread});
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS) p.functions().forget(id);
  return code;
}

CUresult copy_beside_capture(lane& own, const CUDA_MEMCPY3D& copy, CUstream stream, bool per_thread) {
  process& p = process::instance();
  const std::uint64_t id = add_host_copy(copy);
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = run_in_stream(own, id, stream, per_thread); code != CUDA_SUCCESS) return code;
  const auto done = std::make_shared<std::promise<void>>();
  const std::uint64_t tell = p.functions().add(*p.server(), [done](std::int32_t) { done->set_value(); });
  const CUresult code = run_in_stream(own, tell, stream, per_thread);
  if (code != CUDA_SUCCESS) return p.functions().forget(tell), code;
  // A session that ends keeps no promise: what it had is dropped with it.
  const auto kept = done->get_future();
  while (kept.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    if (p.server()->lost()) return session::lost_code;
  }
  return CUDA_SUCCESS;
}

CUresult capture_box(lane& own, const CUDA_MEMCPY3D& copy, CUstream stream, bool per_thread) {
  process& p = process::instance();
  if (copies_on_host(copy)) {
    const std::uint64_t id = add_host_copy(copy);
    return id ? run_in_stream(own, id, stream, per_thread) : CUDA_ERROR_INVALID_VALUE;
  }
  marshal::captured_box_body body{value_of(stream), per_thread, {}};
  std::vector<std::uint64_t> made;
  CUresult code = put_copy(copy, nullptr, body.node, made);
  if (code == CUDA_SUCCESS) {
    request_of<api::opcode::cuMemcpy3DAsync_v2> r(own, body);
    code = r.call();
  }
  if (code != CUDA_SUCCESS) {
    for (const std::uint64_t id : made) p.functions().forget(id);
  }
  return code;
}

bool any_capture_open() { return captures().count.load(std::memory_order_relaxed) != 0; }

namespace ends {

CUresult cuStreamBeginCapture(CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamBeginCapture>(own);
  return code == CUDA_SUCCESS ? begin(own, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, false) : code;
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamBeginCapture_ptsz>(own);
  return code == CUDA_SUCCESS ? begin(own, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, true) : code;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamBeginCapture_v2>(own);
  if (code != CUDA_SUCCESS) return code;
  return is_mode(mode) ? begin(own, stream, mode, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamBeginCapture_v2_ptsz>(own);
  if (code != CUDA_SUCCESS) return code;
  return is_mode(mode) ? begin(own, stream, mode, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamEndCapture>(own);
  return code == CUDA_SUCCESS ? end(own, stream, graph, false) : code;
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamEndCapture_ptsz>(own);
  return code == CUDA_SUCCESS ? end(own, stream, graph, true) : code;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamIsCapturing>(own);
  return code == CUDA_SUCCESS ? is_capturing(own, stream, status, false) : code;
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamIsCapturing_ptsz>(own);
  return code == CUDA_SUCCESS ? is_capturing(own, stream, status, true) : code;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamGetCaptureInfo_v2>(own);
  return code == CUDA_SUCCESS
             ? capture_info(own, stream, {status, id, graph, dependencies, nullptr, count}, false)
             : code;
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** dependencies,
                                        std::size_t* count) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamGetCaptureInfo_v2_ptsz>(own);
  return code == CUDA_SUCCESS
             ? capture_info(own, stream, {status, id, graph, dependencies, nullptr, count}, true)
             : code;
}

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  OUTBOARD_GATE(cuStreamGetCaptureInfo);
  return capture_info(own, stream, {status, id}, false);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  OUTBOARD_GATE(cuStreamGetCaptureInfo_ptsz);
  return capture_info(own, stream, {status, id}, true);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                                   std::size_t* count) {
  OUTBOARD_GATE(cuStreamGetCaptureInfo_v3);
  return capture_info(own, stream, {status, id, graph, nodes, edges, count}, false);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** nodes,
                                        const CUgraphEdgeData** edges, std::size_t* count) {
  OUTBOARD_GATE(cuStreamGetCaptureInfo_v3_ptsz);
  return capture_info(own, stream, {status, id, graph, nodes, edges, count}, true);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* edges, std::size_t count,
                                     CUstreamCaptureMode mode) {
  OUTBOARD_GATE(cuStreamBeginCaptureToGraph);
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return begin_into(own, stream, graph, {nodes, edges, count}, mode, false);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                          const CUgraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode) {
  OUTBOARD_GATE(cuStreamBeginCaptureToGraph_ptsz);
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return begin_into(own, stream, graph, {nodes, edges, count}, mode, true);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                           unsigned flags) {
  OUTBOARD_GATE(cuStreamUpdateCaptureDependencies);
  return update(own, stream, {nodes, nullptr, count}, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                                unsigned flags) {
  OUTBOARD_GATE(cuStreamUpdateCaptureDependencies_ptsz);
  return update(own, stream, {nodes, nullptr, count}, flags, true);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData* edges, std::size_t count,
                                              unsigned flags) {
  OUTBOARD_GATE(cuStreamUpdateCaptureDependencies_v2);
  return update(own, stream, {nodes, edges, count}, flags, false);
}
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode* nodes,
                                                   const CUgraphEdgeData* edges, std::size_t count,
                                                   unsigned flags) {
  OUTBOARD_GATE(cuStreamUpdateCaptureDependencies_v2_ptsz);
  return update(own, stream, {nodes, edges, count}, flags, true);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuThreadExchangeStreamCaptureMode>(own); code != CUDA_SUCCESS)
    return code;
  // Drivers take any number for a mode.
  if (!mode || static_cast<int>(*mode) == marshal::ask_capture) return CUDA_ERROR_INVALID_VALUE;
  const auto before = static_cast<CUstreamCaptureMode>(own.capture_mode);
  if (*mode != before) {
    request_of<api::opcode::cuThreadExchangeStreamCaptureMode> r(own,
                                                                 marshal::capture_body{0, 0, *mode, false});
    if (const CUresult code = r.post(); code != CUDA_SUCCESS) return code;
    own.capture_mode = *mode;
  }
  *mode = before;
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
