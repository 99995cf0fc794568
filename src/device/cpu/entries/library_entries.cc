// Entries of the chapter library. A library is parsed when it is loaded and becomes code in a context at
// first use.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

using library_ptr = std::shared_ptr<library_object>;
using kernel_ptr = std::shared_ptr<kernel_object>;

library_ptr find(CUlibrary handle) { return here().libraries.find(reinterpret_cast<std::uint64_t>(handle)); }
kernel_ptr find(CUkernel handle) {
  return here().kernel_handles.find(reinterpret_cast<std::uint64_t>(handle));
}

CUresult load(CUlibrary* out, const void* image, CUjit_option* options, void** values, unsigned count,
              CUlibraryOption*, void**, unsigned) {
  return after_init([&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    jit_options jit(count, options, values);
    auto l = std::make_shared<library_object>();
    if (const CUresult r = load_image(image, jit, l->source); r != CUDA_SUCCESS) return r;
    for (const ptx::kernel_info& info : l->source->kernels()) {
      auto k = std::make_shared<kernel_object>();
      k->library = l;
      k->info = &info;
      k->settings = std::make_shared<function_settings>();
      l->kernels.push_back(here().kernel_handles.insert(std::move(k)));
    }
    l->handle = here().libraries.insert(l);
    return *out = reinterpret_cast<CUlibrary>(l->handle), CUDA_SUCCESS;
  });
}

CUresult unload(CUlibrary handle) {
  return after_init([&]() -> CUresult {
    machine& m = here();
    const library_ptr l = m.libraries.remove(reinterpret_cast<std::uint64_t>(handle));
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const std::uint64_t kernel : l->kernels) {
      const kernel_ptr k = m.kernel_handles.remove(kernel);
      std::lock_guard lock(k->mutex);
      for (const auto& [c, function] : k->functions) m.functions.remove(function);
    }
    std::lock_guard lock(l->mutex);
    for (const auto& [c, module] : l->modules) m.modules.remove(module);
    return CUDA_SUCCESS;
  });
}

CUresult get_kernel(CUkernel* out, CUlibrary handle, const char* name) {
  return after_init([&]() -> CUresult {
    const library_ptr l = find(handle);
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ptx::kernel_info* info = l->source->find_kernel(name);
    if (info == nullptr) return CUDA_ERROR_NOT_FOUND;
    // The first kernel of a library in a context loads it there: what does not load is said now.
    const thread_state& own = own_thread();
    if (context_ptr c; !own.stack.empty() && current_context(c) == CUDA_SUCCESS) {
      instance_ptr code;
      if (const CUresult r = l->in_context(c, code); r != CUDA_SUCCESS) return r;
    }
    const auto index = static_cast<std::size_t>(info - l->source->kernels().data());
    return *out = reinterpret_cast<CUkernel>(l->kernels[index]), CUDA_SUCCESS;
  });
}

CUresult get_kernel_count(unsigned* out, CUlibrary handle) {
  return after_init([&]() -> CUresult {
    const library_ptr l = find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return *out = static_cast<unsigned>(l->kernels.size()), CUDA_SUCCESS;
  });
}

CUresult enumerate_kernels(CUkernel* out, unsigned count, CUlibrary handle) {
  return after_init([&]() -> CUresult {
    const library_ptr l = find(handle);
    if (out == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const std::uint64_t kernel : l->kernels) {
      if (count-- == 0) break;
      *out++ = reinterpret_cast<CUkernel>(kernel);
    }
    return CUDA_SUCCESS;
  });
}

/// The library as a module of the current context: one handle a context.
CUresult module_in(const library_ptr& l, const context_ptr& c, std::uint64_t& out) {
  instance_ptr code;
  if (const CUresult r = l->in_context(c, code); r != CUDA_SUCCESS) return r;
  std::lock_guard lock(l->mutex);
  std::uint64_t& handle = l->modules[c->id];
  if (handle == 0) {
    auto m = std::make_shared<module_object>();
    m->owner = c;
    m->code = std::move(code);
    handle = m->handle = here().modules.insert(m);
  }
  out = handle;
  return CUDA_SUCCESS;
}

CUresult get_module(CUmodule* out, CUlibrary handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    const library_ptr l = find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::uint64_t module = 0;
    const CUresult r = module_in(l, c, module);
    if (r == CUDA_SUCCESS) *out = reinterpret_cast<CUmodule>(module);
    return r;
  });
}

CUresult get_function(CUfunction* out, CUkernel handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    const kernel_ptr k = find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (k == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::uint64_t module = 0;
    if (const CUresult r = module_in(k->library, c, module); r != CUDA_SUCCESS) return r;
    instance_ptr code;
    if (const CUresult r = k->library->in_context(c, code); r != CUDA_SUCCESS) return r;
    std::lock_guard lock(k->mutex);
    std::uint64_t& function = k->functions[c->id];
    if (function == 0) {
      auto f = std::make_shared<function_object>();
      f->module = module;
      f->owner = c;
      f->code = std::move(code);
      f->info = k->info;
      f->settings = k->settings;
      function = here().functions.insert(std::move(f));
    }
    return *out = reinterpret_cast<CUfunction>(function), CUDA_SUCCESS;
  });
}

CUresult get_library(CUlibrary* out, CUkernel handle) {
  return after_init([&]() -> CUresult {
    const kernel_ptr k = find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (k == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return *out = reinterpret_cast<CUlibrary>(k->library->handle), CUDA_SUCCESS;
  });
}

CUresult variable(CUdeviceptr* address, std::size_t* size, CUlibrary handle, const char* name, bool managed,
                  const context_ptr& c) {
  const library_ptr l = find(handle);
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ptx::variable_info* v = l->source->find_variable(name);
  if (v == nullptr || (managed && !v->managed)) return CUDA_ERROR_NOT_FOUND;
  instance_ptr code;
  if (const CUresult r = l->in_context(c, code); r != CUDA_SUCCESS) return r;
  if (address != nullptr) *address = reinterpret_cast<CUdeviceptr>(code->code()->address(name));
  if (size != nullptr) *size = v->size;
  return CUDA_SUCCESS;
}

CUresult get_global(CUdeviceptr* address, std::size_t* size, CUlibrary handle, const char* name) {
  return with_context(
      [&](context&, const context_ptr& c) { return variable(address, size, handle, name, false, c); });
}

/// Asked for before there is a context, too: then it is the primary one's, where programs of a runtime will
/// be.
CUresult get_managed(CUdeviceptr* address, std::size_t* size, CUlibrary handle, const char* name) {
  return after_init([&]() -> CUresult {
    context_ptr c;
    const CUresult r = current_context(c);
    if (r == CUDA_ERROR_INVALID_CONTEXT) c = here().primary;
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_CONTEXT) return r;
    return variable(address, size, handle, name, true, c);
  });
}

}  // namespace

void fill_library_entries(api::driver_table& t) {
  t.cuLibraryLoadData = load;
  t.cuLibraryUnload = unload;
  t.cuLibraryGetKernel = get_kernel;
  t.cuLibraryGetKernelCount = get_kernel_count;
  t.cuLibraryEnumerateKernels = enumerate_kernels;
  t.cuLibraryGetModule = get_module;
  t.cuLibraryGetGlobal = get_global;
  t.cuLibraryGetManaged = get_managed;
  t.cuKernelGetFunction = get_function;
  t.cuKernelGetLibrary = get_library;
}

}  // namespace outboard::device::cpu
