// Chapter device: all of it is answered from the snapshot.
#include <algorithm>
#include <cstring>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/host_pages.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult gate() { return process::instance().gate(this_lane(), false); }

/// The facts of a device of the session, or nullptr.
const marshal::device_facts* facts_of(CUdevice dev) {
  const auto& devices = process::instance().facts().devices;
  return dev >= 0 && static_cast<std::size_t>(dev) < devices.size() ? &devices[static_cast<std::size_t>(dev)]
                                                                    : nullptr;
}

/// Gate, null check, device check, in the driver's order; `give` fills the outputs.
template <class Give>
CUresult answer(const void* out, CUdevice dev, Give&& give) {
  if (const CUresult code = gate(); code != CUDA_SUCCESS) return code;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const marshal::device_facts* facts = facts_of(dev);
  return facts ? give(*facts) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult copy_text(const std::string& text, char* out, int size) {
  if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(out, text.c_str(), static_cast<std::size_t>(size) - 1);
  out[size - 1] = '\0';
  return CUDA_SUCCESS;
}

/// What this product provides, whatever the device could do locally (design section 5.1): host memory of the
/// client is carried there and back, not shared while kernels run; memory is shared with other processes by
/// descriptor, never by fabric or dma-buf.
std::optional<int> overridden(CUdevice_attribute attrib, int known) {
  switch (attrib) {
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return process::instance().memory().concurrent_managed() ? known : 0;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
      return 0;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return shares_host_memory() ? known : 0;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:  // of this machine
      return shares_host_memory() ? known : -1;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      return known & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:  // see multicast.cc
      return process::instance().facts().device_kind == "vendor" ? 0 : known;
    default:
      return std::nullopt;
  }
}

}  // namespace

CUresult ends::cuDeviceGet(CUdevice* device, int ordinal) {
  return answer(device, ordinal, [&](const auto&) { return *device = ordinal, CUDA_SUCCESS; });
}

CUresult ends::cuDeviceGetCount(int* count) {
  if (const CUresult code = gate(); code != CUDA_SUCCESS) return code;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(process::instance().facts().devices.size());
  return CUDA_SUCCESS;
}

CUresult ends::cuDeviceGetName(char* name, int len, CUdevice dev) {
  return answer(name, dev, [&](const auto& f) { return copy_text(f.name, name, len); });
}

CUresult ends::cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return answer(uuid, dev, [&](const auto& f) { return std::memcpy(uuid, f.uuid.data(), 16), CUDA_SUCCESS; });
}

CUresult ends::cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  return answer(uuid, dev,
                [&](const auto& f) { return std::memcpy(uuid, f.uuid_v2.data(), 16), CUDA_SUCCESS; });
}

/// Locally unique ids exist on Windows only; the Linux driver answers so too.
CUresult ends::cuDeviceGetLuid(char* luid, unsigned*, CUdevice dev) {
  return answer(luid, dev, [&](const auto&) { return CUDA_ERROR_NOT_SUPPORTED; });
}

CUresult ends::cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return answer(bytes, dev, [&](const auto& f) { return *bytes = f.total_memory, CUDA_SUCCESS; });
}

CUresult ends::cuDeviceTotalMem(unsigned* bytes, CUdevice dev) {
  return answer(bytes, dev, [&](const auto& f) {
    *bytes = static_cast<unsigned>(std::min<std::uint64_t>(f.total_memory, 0xffffffffu));
    return CUDA_SUCCESS;
  });
}

CUresult ends::cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return answer(pi, dev, [&](const marshal::device_facts& f) {
    const auto id = static_cast<std::size_t>(attrib);
    if (id >= f.attributes.size()) return CUDA_ERROR_INVALID_VALUE;
    const marshal::attribute_answer& known = f.attributes[id];
    if (known.result != CUDA_SUCCESS) return static_cast<CUresult>(known.result);
    *pi = overridden(attrib, known.value).value_or(known.value);
    return CUDA_SUCCESS;
  });
}

CUresult ends::cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  if (!minor) return gate() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : gate();
  return answer(major, dev, [&](const auto& f) {
    *major = f.compute_major;
    *minor = f.compute_minor;
    return CUDA_SUCCESS;
  });
}

CUresult ends::cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  return answer(prop, dev, [&](const marshal::device_facts& f) {
    const auto a = [&](CUdevice_attribute id) { return f.attributes[static_cast<std::size_t>(id)].value; };
    *prop = {};
    prop->maxThreadsPerBlock = a(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop->maxThreadsDim[0] = a(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    prop->maxThreadsDim[1] = a(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    prop->maxThreadsDim[2] = a(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    prop->maxGridSize[0] = a(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    prop->maxGridSize[1] = a(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    prop->maxGridSize[2] = a(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    prop->sharedMemPerBlock = a(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->totalConstantMemory = a(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = a(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = a(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = a(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = a(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = a(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
  });
}

CUresult ends::cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return answer(pciBusId, dev, [&](const auto& f) {
    if (len <= static_cast<int>(f.pci_bus_id.size())) return CUDA_ERROR_INVALID_VALUE;
    return copy_text(f.pci_bus_id, pciBusId, len);
  });
}

CUresult ends::cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  if (const CUresult code = gate(); code != CUDA_SUCCESS) return code;
  if (!dev || !pciBusId) return CUDA_ERROR_INVALID_VALUE;
  const auto& devices = process::instance().facts().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string& known = devices[i].pci_bus_id;  // "0000:1b:00.0"; programs may leave the domain out
    const bool short_form = known.size() > 5 && strcasecmp(known.c_str() + 5, pciBusId) == 0;
    if (strcasecmp(known.c_str(), pciBusId) != 0 && !short_form) continue;
    *dev = static_cast<CUdevice>(i);
    return CUDA_SUCCESS;
  }
  unsigned bus = 0, device = 0;
  const char* const short_form = std::strchr(pciBusId, ':');
  const bool understood = short_form && (std::sscanf(pciBusId, "%*x:%x:%x", &bus, &device) == 2 ||
                                         std::sscanf(pciBusId, "%x:%x", &bus, &device) == 2);
  return understood ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

/// The host is on another machine, or has a copy of its own: nothing that a kernel does to its memory is
/// atomic there. (A GPU behind PCIe says the same.)
CUresult ends::cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                                 unsigned count, CUdevice dev) {
  return answer(capabilities, dev, [&](const auto&) {
    if (!operations || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto known = [](CUatomicOperation o) { return o >= 0 && o < CU_ATOMIC_OPERATION_MAX; };
    if (!std::all_of(operations, operations + count, known)) return CUDA_ERROR_INVALID_VALUE;
    std::fill_n(capabilities, count, 0u);
    return CUDA_SUCCESS;
  });
}

/// Drivers have it under MPS only.
CUresult ends::cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  return answer(pi, dev, [&](const auto&) { return *pi = 0, CUDA_SUCCESS; });
}

/// Synchronisation objects of NvSci exist on NVIDIA's embedded systems only; drivers elsewhere answer so too.
CUresult ends::cuDeviceGetNvSciSyncAttributes(void* list, CUdevice dev, int flags) {
  if (const CUresult code = gate(); code != CUDA_SUCCESS) return code;
  if (!list) return CUDA_ERROR_INVALID_HANDLE;
  if (!facts_of(dev)) return CUDA_ERROR_INVALID_DEVICE;
  constexpr int known = CUDA_NVSCISYNC_ATTR_SIGNAL | CUDA_NVSCISYNC_ATTR_WAIT;
  return flags == 0 || (flags & ~known) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult ends::cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations,
                                                unsigned count, CUdevice srcDevice, CUdevice dstDevice) {
  return answer(capabilities, srcDevice, [&](const auto&) {
    if (!facts_of(dstDevice) || srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
    if (!operations || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) capabilities[i] = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace outboard::frontend::cuda
