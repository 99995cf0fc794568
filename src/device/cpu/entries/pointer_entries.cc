// Entries of the chapter unified addressing: what is known about a pointer.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

template <class T>
CUresult put(void* out, T value) {
  return *static_cast<T*>(out) = value, CUDA_SUCCESS;
}

bool on_host(memory_kind kind) { return kind == memory_kind::host || kind == memory_kind::registered; }

CUcontext owner_of(const region& block) {
  for (const auto& [handle, c] : here().contexts.all()) {
    if (c->id == block.owner) return reinterpret_cast<CUcontext>(handle);
  }
  return nullptr;
}

CUresult answer(void* out, CUpointer_attribute id, CUdeviceptr address, const region& block) {
  switch (id) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(out, owner_of(block));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(out, on_host(block.kind) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!on_host(block.kind) && block.kind != memory_kind::managed) return CUDA_ERROR_INVALID_VALUE;
      return put(out, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(out, block.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(out, block.kind == memory_kind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(out, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(out, block.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(out, block.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(out, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(out, 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(out, block.writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                : block.readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult get_attribute(void* out, CUpointer_attribute id, CUdeviceptr address) {
  return after_init([&]() -> CUresult {
    const auto block = here().store->lookup(address);
    if (out == nullptr || !block) return CUDA_ERROR_INVALID_VALUE;
    return answer(out, id, address, *block);
  });
}

/// Unlike the single question, unknown pointers are no error here: their attributes are zero.
CUresult get_attributes(unsigned count, CUpointer_attribute* ids, void** out, CUdeviceptr address) {
  return after_init([&]() -> CUresult {
    if (ids == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto block = here().store->lookup(address);
    for (unsigned i = 0; i < count; ++i) {
      if (block && answer(out[i], ids[i], address, *block) == CUDA_SUCCESS) continue;
      switch (ids[i]) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
          put<std::uint64_t>(out[i], 0);
          break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
          put<int>(out[i], -2);
          break;  // the driver's word for none
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
          put<unsigned>(out[i], 0);
          break;
        default:
          return CUDA_ERROR_NOT_SUPPORTED;
      }
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_pointer_entries(api::driver_table& t) {
  t.cuPointerGetAttribute = get_attribute;
  t.cuPointerGetAttributes = get_attributes;
}

}  // namespace outboard::device::cpu
