// Entries of the chapter module.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

using module_ptr = std::shared_ptr<module_object>;

CUmodule handle_of(const module_ptr& m) { return reinterpret_cast<CUmodule>(m->handle); }
module_ptr find(CUmodule handle) { return here().modules.find(reinterpret_cast<std::uint64_t>(handle)); }

CUresult load(CUmodule* out, const void* image, unsigned count, CUjit_option* options, void** values) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    jit_options jit(count, options, values);
    ptx::module_ptr source;
    if (const CUresult r = load_image(image, jit, source); r != CUDA_SUCCESS) return r;
    auto m = std::make_shared<module_object>();
    std::string why;
    if (const CUresult r = instance::make(source, *here().store, m->code, why); r != CUDA_SUCCESS) {
      jit.write_error(why);
      return r;
    }
    m->owner = c;
    m->handle = here().modules.insert(m);
    return *out = handle_of(m), CUDA_SUCCESS;
  });
}

CUresult load_data(CUmodule* out, const void* image) { return load(out, image, 0, nullptr, nullptr); }

CUresult unload(CUmodule handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    const module_ptr m = here().modules.remove(reinterpret_cast<std::uint64_t>(handle));
    if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard lock(m->mutex);
    for (const auto& [name, function] : m->functions) here().functions.remove(function);
    return CUDA_SUCCESS;
  });
}

/// The handle of a kernel of a module, the same at every call.
std::uint64_t function_handle(const module_ptr& m, const ptx::kernel_info& info) {
  std::lock_guard lock(m->mutex);
  std::uint64_t& handle = m->functions[info.name];
  if (handle == 0) {
    auto f = std::make_shared<function_object>();
    f->module = m->handle;
    f->owner = m->owner;
    f->code = m->code;
    f->info = &info;
    f->settings = std::make_shared<function_settings>();
    handle = here().functions.insert(std::move(f));
  }
  return handle;
}

CUresult get_function(CUfunction* out, CUmodule handle, const char* name) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const module_ptr m = find(handle);
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ptx::kernel_info* info = m->code->code()->source().find_kernel(name);
    if (info == nullptr) return CUDA_ERROR_NOT_FOUND;
    return *out = reinterpret_cast<CUfunction>(function_handle(m, *info)), CUDA_SUCCESS;
  });
}

CUresult get_function_count(unsigned* out, CUmodule handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const module_ptr m = find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return *out = static_cast<unsigned>(m->code->code()->source().kernels().size()), CUDA_SUCCESS;
  });
}

CUresult enumerate_functions(CUfunction* out, unsigned count, CUmodule handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const module_ptr m = find(handle);
    if (out == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const ptx::kernel_info& info : m->code->code()->source().kernels()) {
      if (count-- == 0) break;
      *out++ = reinterpret_cast<CUfunction>(function_handle(m, info));
    }
    return CUDA_SUCCESS;
  });
}

CUresult get_global(CUdeviceptr* address, std::size_t* size, CUmodule handle, const char* name) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const module_ptr m = find(handle);
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ptx::variable_info* v = m->code->code()->source().find_variable(name);
    if (v == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = reinterpret_cast<CUdeviceptr>(m->code->code()->address(name));
    if (size != nullptr) *size = v->size;
    return CUDA_SUCCESS;
  });
}

/// Texture and surface references by name belong to PTX that this device refuses: no module has any.
template <class Reference>
CUresult get_reference(Reference* out, CUmodule handle, const char* name) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return find(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
  });
}

}  // namespace

void fill_module_entries(api::driver_table& t) {
  t.cuModuleLoadData = load_data;
  t.cuModuleGetTexRef = get_reference<CUtexref>;
  t.cuModuleGetSurfRef = get_reference<CUsurfref>;
  t.cuModuleLoadDataEx = load;
  t.cuModuleLoadFatBinary = load_data;
  t.cuModuleUnload = unload;
  t.cuModuleGetFunction = get_function;
  t.cuModuleGetFunctionCount = get_function_count;
  t.cuModuleEnumerateFunctions = enumerate_functions;
  t.cuModuleGetGlobal_v2 = get_global;
}

}  // namespace outboard::device::cpu
