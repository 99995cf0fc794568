#include <algorithm>

#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/own_context.hh"

namespace outboard::frontend::cuda::ends {
namespace {

CUresult load_module(CUmodule* module, const void* image, const jit_options* jit) {
  lane& own = this_lane();
  if (const CUresult refused = process::instance().gate(own); refused != CUDA_SUCCESS) return refused;
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t handle = 0;
  const load_order order{api::opcode::cuModuleLoadData, false, jit};
  const CUresult result = load_code(own, order, marshal::image_extent(image), handle);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(handle);
  return result;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load_module(module, image, nullptr); }

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_module(module, image, nullptr);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  if (const CUresult code = gate<api::opcode::cuModuleLoadDataEx>(this_lane()); code != CUDA_SUCCESS)
    return code;
  jit_options jit;
  if (const CUresult code = jit.take(count, options, values); code != CUDA_SUCCESS) return code;
  return load_module(module, image, &jit);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuModuleLoad>(own); code != CUDA_SUCCESS) return code;
  if (!module || !path || !*path) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> file;
  if (const CUresult code = read_file(path, file); code != CUDA_SUCCESS) return code;
  std::uint64_t handle = 0;
  const load_order order{api::opcode::cuModuleLoadData, false, nullptr};
  const CUresult code =
      load_code(own, order, marshal::image_extent(std::span<const std::byte>(file)), handle);
  if (code == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(handle);
  return code;
}

CUresult cuModuleUnload(CUmodule module) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuModuleUnload>(own); code != CUDA_SUCCESS) return code;
  const auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult code = state_of_context(module); code != CUDA_SUCCESS) return code;
  if (info->library) return CUDA_ERROR_NOT_PERMITTED;  // it belongs to its library
  request_of<api::opcode::cuModuleUnload> r(own, marshal::handle_body{value_of(module)});
  r.in_context(info->context);
  freed_names freed;
  forget_code(api::handle_kind::module, value_of(module), freed);
  // It waits for the device; a post would hold up what other threads ask meanwhile.
  return r.call();
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuModuleGetFunction>(own); code != CUDA_SUCCESS) return code;
  if (!function || !name || !*name) return CUDA_ERROR_INVALID_VALUE;
  auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult code = state_of_context(module); code != CUDA_SUCCESS) return code;
  std::uint64_t handle = 0;
  const CUresult code = kernel_by_name(own, *info, value_of(module), name, handle);
  if (code == CUDA_SUCCESS) *function = reinterpret_cast<CUfunction>(handle);
  return code;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  if (const CUresult code = gate<api::opcode::cuModuleGetFunctionCount>(this_lane()); code != CUDA_SUCCESS)
    return code;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  const auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(info->contents->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned capacity, CUmodule module) {
  if (!functions) {
    const CUresult code = gate<api::opcode::cuModuleEnumerateFunctions>(this_lane());
    return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
  }
  struct target {
    CUfunction* next;
    unsigned left;
  } into{functions, capacity};
  return for_each_function(module, &into, [](void* opaque, CUfunction function) {
    auto& t = *static_cast<target*>(opaque);
    if (t.left == 0) return;
    *t.next++ = function;
    --t.left;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* size, CUmodule module, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuModuleGetGlobal_v2>(own); code != CUDA_SUCCESS) return code;
  auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  const bool kernel =
      name && std::ranges::any_of(info->contents->kernels,
                                  [&](const marshal::kernel_info& k) { return k.name == name; });
  if (kernel) return CUDA_ERROR_INVALID_VALUE;
  return variable_by_name(own, {api::opcode::cuModuleGetGlobal_v2, *info, value_of(module), name}, address,
                          size);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  process& p = process::instance();
  if (const CUresult code = gate<api::opcode::cuModuleGetLoadingMode>(this_lane()); code != CUDA_SUCCESS)
    return code;
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = static_cast<CUmoduleLoadingMode>(p.facts().loading_mode);
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda::ends
