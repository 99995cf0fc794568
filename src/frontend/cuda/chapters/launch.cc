#include "frontend/cuda/chapters/launch.hh"

#include <algorithm>
#include <cstring>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/code/code.hh"
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

const launch_limits& limits_of(const lane& own, std::int32_t device) {
  static const auto* const all = [&] {  // never destroyed: calls come from destructors after main too
    auto* made = new std::vector<launch_limits>;
    for (const marshal::device_facts& facts : own.state().devices.facts().devices) {
      made->push_back(launch_limits::of(facts));
    }
    return made;
  }();
  return (*all)[static_cast<std::size_t>(device)];
}

using launch_request = decltype(request(typed<api::opcode::cuLaunchKernel>, std::declval<lane&>()));

CUresult put_launch(launch_request& r, const launch_order& order, const kernel_object& kernel) {
  const launch_shape& shape = order.shape;
  const travelling_attributes attributes(order.attributes);
  r.put(marshal::launch_body{.head = {.kernel = value_of(order.function),
                                      .stream = value_of(order.stream),
                                      .grid = shape.grid,
                                      .block = shape.block,
                                      .shared = shape.shared,
                                      .per_thread = order.per_thread,
                                      .cooperative = shape.cooperative,
                                      .extended = !order.attributes.empty()},
                             .attributes = attributes.list(),
                             .parameters = marshal::launch_parameters::room(kernel.parameter_bytes)});
  const std::span<std::byte> room = r.last(kernel.parameter_bytes);
  if (order.parameters || !order.extra) {
    pack_parameters(room, kernel.parameters, order.parameters);
    return CUDA_SUCCESS;
  }
  const auto packed = packed_buffer(order.extra);
  if (!packed || packed->size() > most_parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (packed->empty() && kernel.parameter_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  // The kernel has no room for more than it declares; what the program leaves out is zero.
  const std::size_t used = std::min<std::size_t>(packed->size(), room.size());
  if (used) std::memcpy(room.data(), packed->data(), used);
  return CUDA_SUCCESS;
}

CUresult check_parameters(lane& own, const launch_order& order, kernel_object& kernel) {
  if (!kernel.layout_known.load(std::memory_order_acquire)) {
    const CUresult code = know_layout(own, kernel, value_of(order.function));
    if (code != CUDA_SUCCESS) return code;
  }
  if (order.parameters && order.extra) {  // both only where one is empty
    const auto packed = packed_buffer(order.extra);
    return packed && packed->empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (order.extra) return CUDA_SUCCESS;
  return order.parameters || kernel.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// A stream that the driver may refuse at once: of another context, or the legacy one beside a capture.
bool of_another_context(const lane& own, const launch_order& order, const kernel_object& kernel) {
  if (default_stream(order.stream)) {
    return any_capture_open() || (kernel.context && kernel.context != own.context_handle());
  }
  const object* stream = find_object<object>(own, order.stream);
  return stream && stream->context != (kernel.context ? kernel.context : own.context_handle());
}

CUresult launch(launch_order order) {
  lane& own = this_lane();
  kernel_object* kernel = find_kernel(own, order.function);
  if (!kernel || !stream_ok(own, order.stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult code = check_attributes(own, order.attributes, order.shape); code != CUDA_SUCCESS)
    return code;
  if (const CUresult code = check_parameters(own, order, *kernel); code != CUDA_SUCCESS) return code;

  const prospect hope = judge(order.shape, *kernel, limits_of(own, own.current()->device));
  const std::uint64_t key =
      hope != prospect::doubtful
          ? 0
          : shape_key(order.shape, kernel->dynamic_shared_limit.load(std::memory_order_relaxed));
  const bool doubted = key && !kernel->accepted.holds(key);
  const bool waits = hope == prospect::bad || doubted || !kernel->launched.load(std::memory_order_acquire) ||
                     odd_attributes(order.attributes) || of_another_context(own, order, *kernel);

  const bool extended = order.shape.cooperative || !order.attributes.empty();
  request r(extended ? typed<api::opcode::cuLaunchKernelEx> : typed<api::opcode::cuLaunchKernel>, own);
  if (const CUresult code = put_launch(r, order, *kernel); code != CUDA_SUCCESS) return code;
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
    return CUDA_ERROR_INVALID_VALUE;
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

travelling_attributes::travelling_attributes(std::span<const CUlaunchAttribute> given) {
  for (const CUlaunchAttribute& a : given) {
    marshal::launch_attribute sent{.id = static_cast<std::uint32_t>(a.id)};
    static_assert(sizeof sent.value == sizeof a.value);
    std::memcpy(sent.value.data(), &a.value, sizeof a.value);
    std::memcpy(bytes_.data() + used_, &sent, sizeof sent);
    used_ += sizeof sent;
  }
}

void pack_parameters(std::span<std::byte> room, std::span<const marshal::kernel_parameter> layout,
                     void* const* values) {
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].size) std::memcpy(room.data() + layout[i].offset, values[i], layout[i].size);
  }
}

std::optional<std::span<const std::byte>> packed_buffer(void* const* extra) {
  constexpr int most_keys = 8;  // two are defined; a list without an end must not be walked indefinitely
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (int i = 0; i < most_keys; ++i, extra += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (key == CU_LAUNCH_PARAM_END_AS_INT) {
      if (!buffer && size) return std::nullopt;
      return std::span(static_cast<const std::byte*>(buffer), buffer ? size : 0);
    }
    if (key == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) {
      buffer = extra[1];
    } else if (key == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT && extra[1]) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

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
