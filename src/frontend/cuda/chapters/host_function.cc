// Host functions and stream callbacks: the program's pointers stay here, the server gets a number.
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

struct host_order {
  CUstream stream = nullptr;
  bool per_thread = false, callback = false;
};

CUresult enqueue(lane& own, const host_order& order, host_functions::function run) {
  if (!stream_ok(order.stream)) return CUDA_ERROR_INVALID_HANDLE;
  process& p = process::instance();
  const std::uint64_t id = p.functions().add(*p.server(), std::move(run));
  request_of<api::opcode::cuLaunchHostFunc> r(
      own, marshal::host_function_body{value_of(order.stream), id, order.per_thread, order.callback});
  p.server()->expect_callbacks(1);
  if (!any_capture_open()) return r.awaited().post();
  // A captured one waits in its graph for launches; a refused one never comes: then the server says so.
  return r.call();
}

CUresult launch_host_function(lane& own, CUstream stream, CUhostFn function, void* data, bool per_thread) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(own, {stream, per_thread, false}, [function, data](std::int32_t) { function(data); });
}

CUresult add_callback(lane& own, CUstream stream, CUstreamCallback callback, void* data, unsigned flags,
                      bool per_thread) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(own, {stream, per_thread, true}, [callback, stream, data](std::int32_t status) {
    callback(stream, static_cast<CUresult>(status), data);
  });
}

}  // namespace

namespace ends {

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuLaunchHostFunc>(own);
  return code == CUDA_SUCCESS ? launch_host_function(own, stream, function, data, false) : code;
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuLaunchHostFunc_ptsz>(own);
  return code == CUDA_SUCCESS ? launch_host_function(own, stream, function, data, true) : code;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamAddCallback>(own);
  return code == CUDA_SUCCESS ? add_callback(own, stream, callback, data, flags, false) : code;
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuStreamAddCallback_ptsz>(own);
  return code == CUDA_SUCCESS ? add_callback(own, stream, callback, data, flags, true) : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
