#include "frontend/cuda/capture.hh"

#include <set>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// Streams in which this process began a capture that has not ended; and, of every stream in a capture, the
/// dependency array that the program was last told: the driver keeps it until the next call on the stream.
struct open_captures {
  std::atomic<int> count{0};
  std::mutex mutex;  // guards what follows
  std::set<std::uint64_t> streams;
  std::map<std::uint64_t, std::vector<CUgraphNode>> told;
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
  if (all.streams.erase(key)) all.count.fetch_sub(1, std::memory_order_relaxed);
  if (all.streams.empty()) all.told.clear();
}

CUresult begin(lane& own, CUstream stream, CUstreamCaptureMode mode, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  request r(api::opcode::cuStreamBeginCapture_v2, own);
  marshal::put_body(r.body(), marshal::capture_body{value_of(stream), 0, mode, per_thread});
  const CUresult code = r.call();
  if (code == CUDA_SUCCESS) opened(stream_key(own, stream, per_thread));
  return code;
}

CUresult ask_status(lane& own, CUstream stream, bool per_thread, CUstreamCaptureStatus& status) {
  request r(api::opcode::cuStreamIsCapturing, own);
  marshal::put_body(r.body(), marshal::capture_body{value_of(stream), 0, 0, per_thread});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return code;
  wire::reader from = r.reply();
  const auto reply = marshal::take_body<marshal::capture_reply>(from);
  if (!from.finished()) return CUDA_ERROR_UNKNOWN;
  status = static_cast<CUstreamCaptureStatus>(reply.status);
  return CUDA_SUCCESS;
}

CUresult end(lane& own, CUstream stream, CUgraph* graph, bool per_thread) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = process::instance().handles(api::handle_kind::graph);
  auto info = std::make_unique<object>();
  info->context = own.context_handle();
  const std::uint64_t made = table.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request r(api::opcode::cuStreamEndCapture, own);
  marshal::put_body(r.body(), marshal::capture_body{value_of(stream), made, 0, per_thread});
  const CUresult code = r.call();
  const std::uint64_t key = stream_key(own, stream, per_thread);
  if (code == CUDA_SUCCESS) {
    closed(key);
    *graph = reinterpret_cast<CUgraph>(made);
    return code;
  }
  table.release(made);
  if (code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) *graph = nullptr;  // as the driver leaves it
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
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph;
  const CUgraphNode** dependencies;
  std::size_t* count;
};

CUresult capture_info(lane& own, CUstream stream, const capture_outputs& out, bool per_thread) {
  if (!out.status) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (!any_capture_open()) return *out.status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  request r(api::opcode::cuStreamGetCaptureInfo_v2, own);
  marshal::put_body(r.body(), marshal::capture_body{value_of(stream), 0, 0, per_thread});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return code;
  wire::reader from = r.reply();
  const auto reply = marshal::take_body<marshal::capture_reply>(from);
  if (!from.finished()) return CUDA_ERROR_UNKNOWN;
  *out.status = static_cast<CUstreamCaptureStatus>(reply.status);
  if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  open_captures& all = captures();
  const std::lock_guard lock(all.mutex);
  std::vector<CUgraphNode>& kept = all.told[stream_key(own, stream, per_thread)];
  kept.clear();
  for (const std::uint64_t node : reply.dependencies) kept.push_back(reinterpret_cast<CUgraphNode>(node));
  if (out.id) *out.id = reply.id;
  if (out.graph) *out.graph = reinterpret_cast<CUgraph>(reply.graph);
  if (out.dependencies) *out.dependencies = kept.data();
  if (out.count) *out.count = kept.size();
  return CUDA_SUCCESS;
}

bool is_mode(int mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

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
  return code == CUDA_SUCCESS ? capture_info(own, stream, {status, id, graph, dependencies, count}, false)
                              : code;
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** dependencies,
                                        std::size_t* count) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamGetCaptureInfo_v2_ptsz>(own);
  return code == CUDA_SUCCESS ? capture_info(own, stream, {status, id, graph, dependencies, count}, true)
                              : code;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuThreadExchangeStreamCaptureMode>(own); code != CUDA_SUCCESS)
    return code;
  if (!mode || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  const auto before = static_cast<CUstreamCaptureMode>(own.capture_mode);
  if (*mode != before) {
    request r(api::opcode::cuThreadExchangeStreamCaptureMode, own);
    marshal::put_body(r.body(), marshal::capture_body{0, 0, *mode, false});
    if (const CUresult code = r.post(); code != CUDA_SUCCESS) return code;
    own.capture_mode = *mode;
  }
  *mode = before;
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
