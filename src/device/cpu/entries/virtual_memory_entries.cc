// Entries of the chapter virtual memory. They need cuInit but no context.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

bool on_this_device(const CUmemLocation& where) {
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE && where.id == 0;
}

CUresult address_reserve(CUdeviceptr* out, std::size_t size, std::size_t alignment, CUdeviceptr hint,
                         unsigned long long flags) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult r = here().store->reserve(size, alignment, hint, address);
    if (r == CUDA_SUCCESS) *out = address;
    return r;
  });
}

CUresult address_free(CUdeviceptr address, std::size_t size) {
  return after_init([&] { return here().store->unreserve(address, size); });
}

CUresult create(CUmemGenericAllocationHandle* out, std::size_t size, const CUmemAllocationProp* properties,
                unsigned long long flags) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || properties == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(properties->location)) return CUDA_ERROR_INVALID_DEVICE;
    // Attributes 103, 110 and 128 say what can be exported, and how.
    if ((properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    std::uint64_t handle = 0;
    const CUresult r = here().store->create_physical(size, *properties, handle);
    if (r == CUDA_SUCCESS) *out = handle;
    return r;
  });
}

CUresult release(CUmemGenericAllocationHandle handle) {
  return after_init([&] { return here().store->release_physical(handle); });
}

CUresult retain(CUmemGenericAllocationHandle* out, void* address) {
  return after_init([&]() -> CUresult {
    std::uint64_t handle = 0;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult r = here().store->retain_physical(reinterpret_cast<std::uint64_t>(address), handle);
    if (r == CUDA_SUCCESS) *out = handle;
    return r;
  });
}

CUresult map(CUdeviceptr address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  return after_init([&]() -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return here().store->map(address, size, offset, handle);
  });
}

CUresult unmap(CUdeviceptr address, std::size_t size) {
  return after_init([&] { return here().store->unmap(address, size); });
}

CUresult set_access(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access, std::size_t count) {
  return after_init([&]() -> CUresult {
    if (access == nullptr || count != 1) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(access->location)) return CUDA_ERROR_INVALID_DEVICE;
    return here().store->set_access(address, size, access->flags);
  });
}

CUresult get_access(unsigned long long* out, const CUmemLocation* location, CUdeviceptr address) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(*location)) return CUDA_ERROR_INVALID_DEVICE;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const CUresult r = here().store->get_access(address, flags);
    if (r == CUDA_SUCCESS) *out = flags;
    return r;
  });
}

CUresult get_granularity(std::size_t* out, const CUmemAllocationProp* properties,
                         CUmemAllocationGranularity_flags) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(properties->location)) return CUDA_ERROR_INVALID_DEVICE;
    return *out = memory::granularity, CUDA_SUCCESS;
  });
}

CUresult get_properties(CUmemAllocationProp* out, CUmemGenericAllocationHandle handle) {
  return after_init([&]() -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return here().store->physical_properties(handle, *out);
  });
}

CUresult export_handle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    unique_fd fd;
    const CUresult r = here().store->export_physical(handle, fd);
    if (r == CUDA_SUCCESS) *static_cast<int*>(out) = fd.release();
    return r;
  });
}

CUresult import_handle(CUmemGenericAllocationHandle* out, void* from, CUmemAllocationHandleType type) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t handle = 0;
    const CUresult r =
        here().store->import_physical(static_cast<int>(reinterpret_cast<std::intptr_t>(from)), handle);
    if (r == CUDA_SUCCESS) *out = handle;
    return r;
  });
}

}  // namespace

void fill_virtual_memory_entries(api::driver_table& t) {
  t.cuMemAddressReserve = address_reserve;
  t.cuMemAddressFree = address_free;
  t.cuMemCreate = create;
  t.cuMemRelease = release;
  t.cuMemRetainAllocationHandle = retain;
  t.cuMemMap = map;
  t.cuMemUnmap = unmap;
  t.cuMemSetAccess = set_access;
  t.cuMemGetAccess = get_access;
  t.cuMemGetAllocationGranularity = get_granularity;
  t.cuMemGetAllocationPropertiesFromHandle = get_properties;
  t.cuMemExportToShareableHandle = export_handle;
  t.cuMemImportFromShareableHandle = import_handle;
}

}  // namespace outboard::device::cpu
