#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda::ends {
namespace {

/// The library's own options concern host tables (a function that reads them is not there yet) and who keeps
/// the image (the server does): nothing of them travels.
CUresult check_library_options(unsigned count, const CUlibraryOption* options) {
  if (count != 0 && !options) return CUDA_ERROR_INVALID_VALUE;
  for (const CUlibraryOption option : std::span(options, count)) {
    if (option < 0 || option >= CU_LIBRARY_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/// Drivers that load lazily look at the image when something of it is first used. The driver at hand does so
/// itself; this is for what it never sees and for the cpu device, which looks at once.
bool fails_later(CUresult code, bool understood) {
  const marshal::snapshot& facts = process::instance().facts();
  if (facts.loading_mode != CU_MODULE_LAZY_LOADING) return false;
  if (understood && facts.device_kind == "vendor") return false;
  return code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_INVALID_PTX ||
         code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

CUresult load(lane& own, CUlibrary* library, const result<marshal::image_view>& image,
              const jit_options& jit) {
  std::uint64_t handle = 0;
  const CUresult code = load_code(own, {api::opcode::cuLibraryLoadData, true, &jit}, image, handle);
  if (code != CUDA_SUCCESS) {
    if (!fails_later(code, bool(image))) return code;
    auto info = std::make_unique<module_info>();
    info->is_library = true;
    info->failure = code;
    info->contents = std::make_shared<const marshal::kernel_table>();
    handle = process::instance().objects().handles(api::handle_kind::library).reserve(std::move(info));
    if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return *library = reinterpret_cast<CUlibrary>(handle), CUDA_SUCCESS;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                           unsigned count, CUlibraryOption* library_options, void**, unsigned library_count) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryLoadData>(own); code != CUDA_SUCCESS) return code;
  if (!library || !image) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check_library_options(library_count, library_options); code != CUDA_SUCCESS)
    return code;
  jit_options jit;
  if (const CUresult code = jit.take(count, options, values); code != CUDA_SUCCESS) return code;
  return load(own, library, marshal::image_extent(image), jit);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                               unsigned count, CUlibraryOption* library_options, void**,
                               unsigned library_count) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryLoadFromFile>(own); code != CUDA_SUCCESS) return code;
  if (!library || !path) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check_library_options(library_count, library_options); code != CUDA_SUCCESS)
    return code;
  jit_options jit;
  if (const CUresult code = jit.take(count, options, values); code != CUDA_SUCCESS) return code;
  std::vector<std::byte> file;
  if (const CUresult code = read_file(path, file); code != CUDA_SUCCESS) return code;
  return load(own, library, marshal::image_extent(std::span<const std::byte>(file)), jit);
}

CUresult cuLibraryUnload(CUlibrary library) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryUnload>(own); code != CUDA_SUCCESS) return code;
  const auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  freed_names freed;
  forget_code(api::handle_kind::library, value_of(library), freed);
  if (info->failure != CUDA_SUCCESS) return CUDA_SUCCESS;
  request_of<api::opcode::cuLibraryUnload> r(own, marshal::handle_body{value_of(library)});
  // It waits for the device; a post would hold up what other threads ask meanwhile.
  return r.call();
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryGetKernel>(own); code != CUDA_SUCCESS) return code;
  if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
  auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  std::uint64_t handle = 0;
  const CUresult code = kernel_by_name(own, *info, value_of(library), name, handle);
  if (code == CUDA_SUCCESS) *kernel = reinterpret_cast<CUkernel>(handle);
  return code;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  if (const CUresult code = gate<api::opcode::cuLibraryGetKernelCount>(this_lane()); code != CUDA_SUCCESS)
    return code;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  const auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  if (info->failure != CUDA_SUCCESS) return info->failure;
  *count = static_cast<unsigned>(info->contents->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned capacity, CUlibrary library) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryEnumerateKernels>(own); code != CUDA_SUCCESS)
    return code;
  if (!kernels) return CUDA_ERROR_INVALID_VALUE;
  auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  if (info->failure != CUDA_SUCCESS) return info->failure;
  unsigned n = 0;
  for (const marshal::kernel_info& facts : info->contents->kernels) {
    if (n == capacity) break;
    std::uint64_t handle = 0;
    const CUresult code = kernel_by_name(own, *info, value_of(library), facts.name, handle);
    if (code != CUDA_SUCCESS) return code;
    kernels[n++] = reinterpret_cast<CUkernel>(handle);
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryGetModule>(own); code != CUDA_SUCCESS) return code;
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  return module_of_library(own, library, *module);
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* size, CUlibrary library, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryGetGlobal>(own); code != CUDA_SUCCESS) return code;
  auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  return variable_by_name(own, {api::opcode::cuLibraryGetGlobal, *info, value_of(library), name}, address,
                          size);
}

/// Functions that host and device call by one address exist where both share memory and instruction set: on
/// no GPU that one reaches over a network. Drivers of such GPUs say of every name that there is none.
CUresult cuLibraryGetUnifiedFunction(void**, CUlibrary library, const char*) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryGetUnifiedFunction>(own); code != CUDA_SUCCESS)
    return code;
  return find_object<module_info>(library) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace outboard::frontend::cuda::ends
