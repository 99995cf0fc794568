// Chapter addressing: what a pointer is, answered from the books.
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"

namespace outboard::frontend::cuda {
namespace {

template <class T>
CUresult give(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

/// Host memory, as seen by kernels: pinned memory under its own address; the program's own only once mapped.
CUresult device_pointer(const memory_block& block, CUdeviceptr ptr, void* data) {
  if (!is_host(block.kind)) return give(data, ptr);
  if (block.kind == memory_kind::pinned) return give(data, ptr);
  lane& own = this_lane();
  std::uint64_t address = 0;
  const CUresult code =
      own.current() ? device_pointer_of(own, block, ptr, address) : CUDA_ERROR_INVALID_CONTEXT;
  return code == CUDA_SUCCESS ? give(data, address) : code;
}

CUresult host_pointer(const memory_block& block, CUdeviceptr ptr, void* data) {
  if (block.kind == memory_kind::alias) return give(data, block.host + (ptr - block.base));
  const bool has = lies_on_host(block.kind) || block.kind == memory_kind::managed;
  return has ? give(data, ptr) : CUDA_ERROR_INVALID_VALUE;
}

/// What memory was made for, by its allocation or its pool.
std::uint64_t allowed_handle_types(const memory_block& block) {
  process& p = process::instance();
  if (block.kind == memory_kind::pool) {
    const auto* from =
        static_cast<const pool_info*>(p.objects().handles(api::handle_kind::memory_pool).find(block.pool));
    return from && from->exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
  }
  if (!is_mapped(block.kind)) return 0;
  const auto placed = p.memory().virtual_memory().at(block.base);
  const auto* made = placed ? static_cast<const allocation_info*>(
                                  p.objects().handles(api::handle_kind::allocation).find(placed->handle))
                            : nullptr;
  return made ? made->properties.requestedHandleTypes : 0;
}

/// Memory of the default pool may have been made before anybody asked for that pool's handle.
CUresult give_pool(const memory_block& block, void* data) {
  CUmemoryPool pool = reinterpret_cast<CUmemoryPool>(block.pool);
  const CUresult code = block.kind == memory_kind::pool && !pool
                            ? ends::cuDeviceGetDefaultMemPool(&pool, block.device)
                            : CUDA_SUCCESS;
  return code == CUDA_SUCCESS ? give(data, pool) : code;
}

/// Memory of another process counts as the device's in whose context it was opened.
std::int32_t ordinal(const memory_block& block) {
  const context_state* opened = block.kind == memory_kind::imported
                                    ? process::instance().objects().find_context(block.context)
                                    : nullptr;
  return opened ? opened->device : block.device;
}

/// What the driver calls the range: of memory of the host that is mapped, the whole reservation.
reservation range_of(const memory_block& block) {
  const auto reserved = block.kind == memory_kind::host_range
                            ? process::instance().memory().virtual_memory().range_of(block.base)
                            : std::nullopt;
  return reserved.value_or(reservation{block.base, block.size});
}

CUresult attribute_of(const memory_block& block, CUpointer_attribute attribute, CUdeviceptr ptr, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:  // pools belong to a device
      return give(data, block.kind == memory_kind::pool ? 0 : block.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(data, names_host(block.kind) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return device_pointer(block, ptr, data);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return host_pointer(block, ptr, data);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give(data, block.id);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give(data, block.sync_memops ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(data, block.kind == memory_kind::managed ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(data, ordinal(block));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give(data, block.kind == memory_kind::device ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give(data, range_of(block).base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give(data, range_of(block).size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give(data, allowed_handle_types(block));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give(data, 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give(data, static_cast<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give_pool(block, data);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give(data, block.size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give(data, block.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give(data, block.id);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// What cuPointerGetAttributes leaves for a pointer that CUDA does not know, or an attribute that does not
/// apply.
void give_nothing(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      give(data, std::uint64_t{0});
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      give(data, -2);
      break;  // CU_DEVICE_INVALID
    default:
      give(data, 0);
      break;
  }
}

}  // namespace

CUresult ends::cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  const auto block = p.memory().addresses().find(ptr);
  return block ? attribute_of(*block, attribute, ptr, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult ends::cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  const auto block = p.memory().addresses().find(ptr);
  if (!block || is_host(block->kind)) return CUDA_ERROR_INVALID_VALUE;
  if (block->kind == memory_kind::host_range) return CUDA_ERROR_NOT_SUPPORTED;
  unsigned on = 0;
  std::memcpy(&on, value, sizeof on);
  return p.memory().addresses().set_sync_memops(ptr, on != 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ends::cuPointerGetAttributes(unsigned numAttributes, CUpointer_attribute* attributes, void** data,
                                      CUdeviceptr ptr) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (numAttributes == 0 || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  const auto block = p.memory().addresses().find(ptr);
  for (unsigned i = 0; i < numAttributes; ++i) {
    const bool known = attributes[i] >= CU_POINTER_ATTRIBUTE_CONTEXT &&
                       attributes[i] <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
    if (!data[i] || !known) return CUDA_ERROR_INVALID_VALUE;
    if (!block || attribute_of(*block, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
      give_nothing(attributes[i], data[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
