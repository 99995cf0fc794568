// Chapter execution, the launches of CUDA 3: shape and parameters are set in the kernel one by one, then it
// is launched as they stand. And cooperative launches on several devices: one cooperative launch each (that
// they wait for each other was taken out of the driver with CUDA 13).
#include <algorithm>
#include <cstring>

#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda {
namespace {

using api::opcode;

constexpr unsigned most_parameter_bytes = 32764;  // since Volta
constexpr unsigned most_shared_bytes = 48 << 10;  // what needs no consent of the kernel's

/// Calls change(gathered launch) with the kernel's lock.
template <opcode Op, class Change>
CUresult with_gathered(CUfunction function, Change&& change) {
  lane& own = this_lane();
  if (const CUresult code = gate<Op>(own); code != CUDA_SUCCESS) return code;
  kernel_object* kernel = find_kernel(function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(kernel->mutex);
  return change(kernel->gathered);
}

CUresult put(gathered_launch& to, int offset, const void* value, unsigned bytes) {
  if (offset < 0 || !value || bytes > most_parameter_bytes ||
      static_cast<unsigned>(offset) > most_parameter_bytes - bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t end = static_cast<std::size_t>(offset) + bytes;
  if (to.parameters.size() < end) to.parameters.resize(end);
  if (bytes) std::memcpy(to.parameters.data() + offset, value, bytes);
  return CUDA_SUCCESS;
}

std::int64_t most_threads() {
  const auto device = static_cast<std::size_t>(this_lane().current()->device);
  return process::instance()
      .facts()
      .devices[device]
      .attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]
      .value;
}

template <opcode Op>
CUresult launch(CUfunction function, int width, int height, CUstream stream) {
  gathered_launch now;
  const CUresult code =
      with_gathered<Op>(function, [&](gathered_launch& g) { return now = g, CUDA_SUCCESS; });
  if (code != CUDA_SUCCESS) return code;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  now.parameters.resize(now.bytes);
  std::size_t bytes = now.bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const auto u = [](int n) { return static_cast<unsigned>(n); };
  return ends::cuLaunchKernel(function, u(width), u(height), 1, u(now.block[0]), u(now.block[1]),
                              u(now.block[2]), now.shared, stream, nullptr, bytes ? extra : nullptr);
}

CUresult check_devices(const CUDA_LAUNCH_PARAMS* list, unsigned count, unsigned flags) {
  constexpr unsigned known = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                             CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
  if (!list || count == 0 || (flags & ~known) || count > process::instance().facts().devices.size())
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (!find_kernel(list[i].function) || default_stream(list[i].hStream) || !stream_ok(list[i].hStream))
      return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace ends {

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
  return with_gathered<opcode::cuFuncSetBlockShape>(f, [&](gathered_launch& g) {
    const std::int64_t most = most_threads();
    if (x <= 0 || y <= 0 || z <= 0 || x > most || y > most / x || z > most / x / y)
      return CUDA_ERROR_INVALID_VALUE;
    return g.block = {x, y, z}, CUDA_SUCCESS;
  });
}
CUresult cuFuncSetSharedSize(CUfunction f, unsigned bytes) {
  return with_gathered<opcode::cuFuncSetSharedSize>(f, [&](gathered_launch& g) {
    if (bytes > most_shared_bytes) return CUDA_ERROR_INVALID_VALUE;
    return g.shared = bytes, CUDA_SUCCESS;
  });
}
CUresult cuParamSetSize(CUfunction f, unsigned bytes) {
  return with_gathered<opcode::cuParamSetSize>(f, [&](gathered_launch& g) {
    if (bytes > most_parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    return g.bytes = bytes, CUDA_SUCCESS;
  });
}
CUresult cuParamSeti(CUfunction f, int offset, unsigned value) {
  return with_gathered<opcode::cuParamSeti>(
      f, [&](gathered_launch& g) { return put(g, offset, &value, sizeof value); });
}
CUresult cuParamSetf(CUfunction f, int offset, float value) {
  return with_gathered<opcode::cuParamSetf>(
      f, [&](gathered_launch& g) { return put(g, offset, &value, sizeof value); });
}
CUresult cuParamSetv(CUfunction f, int offset, void* value, unsigned bytes) {
  return with_gathered<opcode::cuParamSetv>(f,
                                            [&](gathered_launch& g) { return put(g, offset, value, bytes); });
}
/// The references of a kernel's module are bound to it by themselves (manual); no other can be.
CUresult cuParamSetTexRef(CUfunction f, int unit, CUtexref reference) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuParamSetTexRef>(own); code != CUDA_SUCCESS) return code;
  const kernel_object* kernel = find_kernel(f);
  if (!kernel || !find_object<object>(reference)) return CUDA_ERROR_INVALID_HANDLE;
  auto* module = find_object<module_info>(reinterpret_cast<CUmodule>(kernel->parent));
  if (!module || unit != CU_PARAM_TR_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(module->mutex);
  const auto is_this = [&](const auto& known) { return known.second == value_of(reference); };
  const bool known = std::any_of(module->textures.begin(), module->textures.end(), is_this);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunch(CUfunction f) { return launch<opcode::cuLaunch>(f, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction f, int width, int height) {
  return launch<opcode::cuLaunchGrid>(f, width, height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return launch<opcode::cuLaunchGridAsync>(f, width, height, stream);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned count, unsigned flags) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuLaunchCooperativeKernelMultiDevice>(own); code != CUDA_SUCCESS)
    return code;
  if (const CUresult code = check_devices(list, count, flags); code != CUDA_SUCCESS) return code;
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& p = list[i];
    const CUresult code = ends::cuLaunchCooperativeKernel(p.function, p.gridDimX, p.gridDimY, p.gridDimZ,
                                                          p.blockDimX, p.blockDimY, p.blockDimZ,
                                                          p.sharedMemBytes, p.hStream, p.kernelParams);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
