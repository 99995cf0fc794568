#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/own_context.hh"

namespace outboard::frontend::cuda {
namespace {

/// Settings remembered of a kernel; libraries have a handful.
constexpr std::size_t most_taken = 64;

/// A kernel as one of the two chapters names it: a CUfunction belongs to its context's device (a CUkernel
/// given as one, to the current context's), a CUkernel comes with a device.
struct named_kernel {
  kernel_object* object = nullptr;
  std::uint64_t handle = 0;
  int device = 0;
  bool is_function = false;
};

template <api::opcode Op>
CUresult name_function(lane& own, CUfunction function, named_kernel& out) {
  process& p = process::instance();
  if (const CUresult code = gate<Op>(own); code != CUDA_SUCCESS) return code;
  out = {find_kernel(function), value_of(function), 0, true};
  if (!out.object) return CUDA_ERROR_INVALID_HANDLE;
  const context_state* context =
      out.object->context ? p.objects().find_context(out.object->context) : own.current();
  out.device = context ? context->device : 0;
  return CUDA_SUCCESS;
}

template <api::opcode Op>
CUresult name_kernel(lane& own, CUkernel kernel, int device, named_kernel& out) {
  if (const CUresult code = gate<Op>(own); code != CUDA_SUCCESS) return code;
  out = {find_object<kernel_object>(kernel), value_of(kernel), device, false};
  if (!out.object) return CUDA_ERROR_INVALID_HANDLE;
  return process::instance().objects().primary(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/// All attributes at once, the first time. With the kernel's lock.
CUresult ask_attributes(lane& own, const named_kernel& kernel) {
  if (kernel.object->attributes.contains(kernel.device)) return CUDA_SUCCESS;
  using asks = opcode_for<marshal::kernel_query_body, marshal::kernel_query_reply>;
  typed_request r(
      kernel.is_function ? asks(api::opcode::cuFuncGetAttribute) : asks(api::opcode::cuKernelGetAttribute),
      own, marshal::kernel_query_body{kernel.handle, kernel.device});
  marshal::kernel_query_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  kernel.object->attributes[kernel.device] = std::move(reply.attributes);
  return CUDA_SUCCESS;
}

CUresult get_attribute(lane& own, const named_kernel& kernel, CUfunction_attribute attribute, int* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(kernel.object->mutex);
  if (const CUresult code = ask_attributes(own, kernel); code != CUDA_SUCCESS) return code;
  const auto& known = kernel.object->attributes[kernel.device];
  const auto i = static_cast<std::size_t>(attribute);
  if (i >= known.size()) return CUDA_ERROR_INVALID_VALUE;
  if (known[i].result == CUDA_SUCCESS) *value = known[i].value;
  return static_cast<CUresult>(known[i].result);
}

using sets = opcode_for<marshal::kernel_set_body>;

CUresult set_attribute(lane& own, const named_kernel& kernel, CUfunction_attribute attribute, int value) {
  const std::lock_guard lock(kernel.object->mutex);
  const std::pair key{kernel.device, static_cast<int>(attribute)};
  // Libraries set the same value before every launch.
  const auto set = kernel.object->set_values.find(key);
  if (set != kernel.object->set_values.end() && set->second == value) return CUDA_SUCCESS;
  typed_request r(
      kernel.is_function ? sets(api::opcode::cuFuncSetAttribute) : sets(api::opcode::cuKernelSetAttribute),
      own, marshal::kernel_set_body{kernel.handle, kernel.device, attribute, value});
  // Libraries also change between values from launch to launch: what the driver took once it takes again.
  const std::tuple setting{kernel.device, static_cast<int>(attribute), value};
  const bool known = kernel.object->taken.contains(setting);
  if (const CUresult code = known ? r.post() : r.call(); code != CUDA_SUCCESS) return code;
  if (!known && kernel.object->taken.size() < most_taken) kernel.object->taken.insert(setting);
  kernel.object->set_values[key] = value;
  kernel.object->attributes.erase(kernel.device);  // one attribute may move another
  kernel.object->occupancies.clear();
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    kernel.object->dynamic_shared_limit.store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
  }
  return CUDA_SUCCESS;
}

CUresult post_setting(lane& own, sets code, const named_kernel& kernel, int value) {
  typed_request r(code, own, marshal::kernel_set_body{kernel.handle, kernel.device, 0, value});
  return r.post();
}

CUresult parameter_info(lane& own, const named_kernel& kernel, std::size_t index, std::size_t* offset,
                        std::size_t* size) {
  if (!offset) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = know_layout(own, *kernel.object, kernel.handle); code != CUDA_SUCCESS)
    return code;
  if (index >= kernel.object->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.object->parameters[index].offset;
  if (size) *size = kernel.object->parameters[index].size;
  return CUDA_SUCCESS;
}

bool is_cache_config(CUfunc_cache config) {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

}  // namespace

namespace ends {

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncGetAttribute>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (const CUresult code = state_of_context(function); code != CUDA_SUCCESS) return code;
  return get_attribute(own, kernel, attribute, value);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelGetAttribute>(own, handle, device, kernel);
      code != CUDA_SUCCESS)
    return code;
  return get_attribute(own, kernel, attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncSetAttribute>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  return set_attribute(own, kernel, attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelSetAttribute>(own, handle, device, kernel);
      code != CUDA_SUCCESS)
    return code;
  return set_attribute(own, kernel, attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncSetCacheConfig>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!is_cache_config(config)) return CUDA_ERROR_INVALID_VALUE;
  return post_setting(own, api::opcode::cuFuncSetCacheConfig, kernel, config);
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelSetCacheConfig>(own, handle, device, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!is_cache_config(config)) return CUDA_ERROR_INVALID_VALUE;
  return post_setting(own, api::opcode::cuKernelSetCacheConfig, kernel, config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncSetSharedMemConfig>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return post_setting(own, api::opcode::cuFuncSetSharedMemConfig, kernel, config);
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncGetName>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel.object->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelGetName>(own, handle, 0, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel.object->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncGetParamInfo>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  return parameter_info(own, kernel, index, offset, size);
}

CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelGetParamInfo>(own, handle, 0, kernel);
      code != CUDA_SUCCESS)
    return code;
  return parameter_info(own, kernel, index, offset, size);
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncGetModule>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  const wire::handle parent{kernel.object->parent};
  if (parent.kind() == static_cast<std::uint8_t>(api::handle_kind::library)) {
    return module_of_library(own, reinterpret_cast<CUlibrary>(parent.value), *module);
  }
  *module = reinterpret_cast<CUmodule>(parent.value);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_kernel<api::opcode::cuKernelGetLibrary>(own, handle, 0, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!library) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(kernel.object->parent);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuKernelGetFunction>(own); code != CUDA_SUCCESS) return code;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return function_of_kernel(own, kernel, *function);
}

CUresult cuFuncLoad(CUfunction function) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncLoad>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  request_of<api::opcode::cuFuncLoad> r(own, marshal::handle_body{kernel.handle});
  return r.call();
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  lane& own = this_lane();
  named_kernel kernel;
  if (const CUresult code = name_function<api::opcode::cuFuncIsLoaded>(own, function, kernel);
      code != CUDA_SUCCESS)
    return code;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuFuncIsLoaded> r(own, marshal::handle_body{kernel.handle});
  marshal::number_reply loaded;
  if (const CUresult code = r.call(loaded); code != CUDA_SUCCESS) return code;
  *state = static_cast<CUfunctionLoadingState>(loaded.value);
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
