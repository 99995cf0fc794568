// Host functions and stream callbacks: the program's pointers stay here, the server gets a number.
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

struct host_order {
  CUstream stream = nullptr;
  bool per_thread = false, callback = false;
};

CUresult enqueue(lane& own, const host_order& order, host_functions::function run) {
  if (!stream_ok(own, order.stream)) return CUDA_ERROR_INVALID_HANDLE;
  process& p = own.state();
  const std::uint64_t id = p.functions.add(*p.connection.server(), std::move(run), {}, !any_capture_open());
  request r(typed<api::opcode::cuLaunchHostFunc>, own,
            marshal::host_function_body{.stream = value_of(order.stream),
                                        .id = id,
                                        .per_thread = order.per_thread,
                                        .callback = order.callback});
  p.connection.server()->expect_callbacks(1);
  if (!any_capture_open()) return r.post();
  // A captured function waits in its graph for launches; for a refused one the server answers with the error.
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
  return launch_host_function(own, stream, function, data, false);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  lane& own = this_lane();
  return launch_host_function(own, stream, function, data, true);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  lane& own = this_lane();
  return add_callback(own, stream, callback, data, flags, false);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  lane& own = this_lane();
  return add_callback(own, stream, callback, data, flags, true);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
