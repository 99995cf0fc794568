#include <algorithm>
#include <cstring>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/code/launch_attributes.hh"
#include "frontend/cuda/code/launch_parameters.hh"
#include "frontend/cuda/code/launch_shape.hh"
#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {
namespace {

/// More than any driver takes: 4 KiB, 32 KiB since CUDA 12.1.
constexpr std::size_t most_parameter_bytes = 32 << 10;

struct launch_order {
  CUfunction function = nullptr;
  launch_shape shape;
  CUstream stream = nullptr;
  void* const* parameters = nullptr;
  void* const* extra = nullptr;
  std::span<const CUlaunchAttribute> attributes;
  bool per_thread = false;
};

const launch_limits& limits_of(std::int32_t device) {
  static const auto* const all = [] {  // never destroyed: see process::instance()
    auto* made = new std::vector<launch_limits>;
    for (const marshal::device_facts& facts : process::instance().facts().devices) {
      made->push_back(launch_limits::of(facts));
    }
    return made;
  }();
  return (*all)[static_cast<std::size_t>(device)];
}

/// A marshal::launch_body, without building one: the hot path takes no memory.
CUresult put_launch(wire::writer& w, const launch_order& order, const kernel_object& kernel) {
  const launch_shape& shape = order.shape;
  marshal::put_body(w, marshal::launch_head{.kernel = value_of(order.function),
                                            .stream = value_of(order.stream),
                                            .grid = shape.grid,
                                            .block = shape.block,
                                            .shared = shape.shared,
                                            .per_thread = order.per_thread,
                                            .cooperative = shape.cooperative,
                                            .extended = !order.attributes.empty()});
  put_attributes(w, order.attributes);
  if (order.parameters || !order.extra) {
    put_parameters(w, kernel.parameters, kernel.parameter_bytes, order.parameters);
    return CUDA_SUCCESS;
  }
  const auto packed = packed_buffer(order.extra);
  if (!packed || packed->size() > most_parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (packed->empty() && kernel.parameter_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  // What the kernel has no room for is nobody's; what the program leaves out is zero.
  w.put<std::uint64_t>(kernel.parameter_bytes);
  const std::span<std::byte> room = w.room(kernel.parameter_bytes);
  const std::size_t used = std::min<std::size_t>(packed->size(), room.size());
  if (used) std::memcpy(room.data(), packed->data(), used);
  return CUDA_SUCCESS;
}

CUresult check_parameters(lane& own, const launch_order& order, kernel_object& kernel) {
  const CUresult code = know_layout(own, kernel, value_of(order.function));
  if (code != CUDA_SUCCESS) return code;
  if (order.parameters && order.extra) {  // both only where one is empty
    const auto packed = packed_buffer(order.extra);
    return packed && packed->empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (order.extra) return CUDA_SUCCESS;
  return order.parameters || kernel.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// A stream that the driver may refuse at once: of another context, or the legacy one beside a capture.
bool elsewhere(const lane& own, const launch_order& order, const kernel_object& kernel) {
  if (default_stream(order.stream)) {
    return any_capture_open() || (kernel.context && kernel.context != own.context_handle());
  }
  const object* stream = find_object<object>(order.stream);
  return stream && stream->context != (kernel.context ? kernel.context : own.context_handle());
}

CUresult launch(launch_order order) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  kernel_object* kernel = find_kernel(order.function);
  if (!kernel || !stream_ok(order.stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult code = check_attributes(order.attributes, order.shape); code != CUDA_SUCCESS)
    return code;
  if (const CUresult code = check_parameters(own, order, *kernel); code != CUDA_SUCCESS) return code;

  const prospect hope = judge(order.shape, *kernel, limits_of(own.current()->device));
  const std::uint64_t key =
      hope != prospect::doubtful
          ? 0
          : shape_key(order.shape, kernel->dynamic_shared_limit.load(std::memory_order_relaxed));
  const bool doubted = key && !kernel->accepted.holds(key);
  const bool waits = hope == prospect::bad || doubted || !kernel->launched.load(std::memory_order_acquire) ||
                     odd_attributes(order.attributes) || elsewhere(own, order, *kernel);

  using launches = opcode_for<marshal::by_hand<marshal::launch_body>>;
  typed_request r(order.shape.cooperative || !order.attributes.empty()
                      ? launches(api::opcode::cuLaunchKernelEx)
                      : launches(api::opcode::cuLaunchKernel),
                  own);
  r.in_stream(order.stream, order.per_thread);
  if (const CUresult code = put_launch(r.body(), order, *kernel); code != CUDA_SUCCESS) return code;
  if (!waits) return r.post();
  const CUresult code = r.call();
  if (code == CUDA_SUCCESS) {
    kernel->launched.store(true, std::memory_order_release);
    if (key) kernel->accepted.keep(key);
  }
  return code;
}

CUresult launch_extended(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra,
                         bool per_thread) {
  if (!config || (config->numAttrs && !config->attrs)) {
    const CUresult code = process::instance().gate(this_lane());
    return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
  }
  launch_order order;
  order.function = function;
  order.shape.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  order.shape.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  order.shape.shared = config->sharedMemBytes;
  order.stream = config->hStream;
  order.parameters = parameters;
  order.extra = extra;
  order.attributes = {config->attrs, config->numAttrs};
  order.per_thread = per_thread;
  return launch(order);
}

}  // namespace

namespace ends {

#define OUTBOARD_LAUNCH_SIZES                                                                          \
  CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
      unsigned block_z, unsigned shared, CUstream stream
#define OUTBOARD_LAUNCH_SHAPE(cooperative) \
  { {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {}, shared, cooperative }

CUresult cuLaunchKernel(OUTBOARD_LAUNCH_SIZES, void** parameters, void** extra) {
  return launch({f, OUTBOARD_LAUNCH_SHAPE(false), stream, parameters, extra, {}, false});
}

CUresult cuLaunchKernel_ptsz(OUTBOARD_LAUNCH_SIZES, void** parameters, void** extra) {
  return launch({f, OUTBOARD_LAUNCH_SHAPE(false), stream, parameters, extra, {}, true});
}

CUresult cuLaunchCooperativeKernel(OUTBOARD_LAUNCH_SIZES, void** parameters) {
  return launch({f, OUTBOARD_LAUNCH_SHAPE(true), stream, parameters, nullptr, {}, false});
}

CUresult cuLaunchCooperativeKernel_ptsz(OUTBOARD_LAUNCH_SIZES, void** parameters) {
  return launch({f, OUTBOARD_LAUNCH_SHAPE(true), stream, parameters, nullptr, {}, true});
}

#undef OUTBOARD_LAUNCH_SHAPE
#undef OUTBOARD_LAUNCH_SIZES

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return launch_extended(config, f, parameters, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return launch_extended(config, f, parameters, extra, true);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
