// Chapter virtual memory: address ranges come from the window, so they mean the same after a rebuild; what is
// mapped in them is booked here and made on the server. The driver's checks of arguments are made here; a
// handle stays known while memory is mapped, because a program may retain it again by an address.
#include <algorithm>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"

namespace outboard::frontend::cuda {
namespace {

handle_table& allocations(const lane& own) { return own.state().handles[api::handle_kind::allocation]; }

allocation_info* find_allocation(const lane& own, std::uint64_t handle) {
  return static_cast<allocation_info*>(allocations(own).find(handle));
}

/// nullptr for mapped memory, too, whose last handle was released.
allocation_info* held_allocation(const lane& own, std::uint64_t handle) {
  allocation_info* info = find_allocation(own, handle);
  return info && info->handles.load() > 0 ? info : nullptr;
}

bool whole(std::uint64_t value) { return value % window_granule == 0; }

marshal::allocation_body body_of(const CUmemAllocationProp& prop) {
  marshal::allocation_body body;
  body.type = prop.type;
  body.handle_types = prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  body.location_type = prop.location.type;
  body.location = prop.location.id;
  body.compression = prop.allocFlags.compressionType;
  body.rdma_capable = prop.allocFlags.gpuDirectRDMACapable;
  body.usage = prop.allocFlags.usage;
  return body;
}

/// Memory of devices only, as the attributes say. Fabric handles are refused as on a board without a fabric
/// manager.
CUresult check_properties(const lane& own, const CUmemAllocationProp* prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type <= CU_MEM_LOCATION_TYPE_INVALID ||
      prop->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!own.state().devices.primary(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (prop->requestedHandleTypes & (CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/// From the window: the current device's slot first, then the others'.
bool reserve_in_window(const lane& own, reservation& wanted, std::uint64_t alignment, std::uint64_t hint) {
  process& p = own.state();
  const auto devices = static_cast<int>(p.devices.count());
  const int first = own.current() ? own.current()->device : 0;
  for (int i = 0; i < devices; ++i) {
    const int device = (first + i) % devices;
    slot_addresses* slot = p.memory.window.slot(device);
    if (!slot) return false;
    if (hint && whole(hint) && slot->take_at(hint, wanted.size)) {
      wanted.base = hint;
    } else {
      wanted.base = slot->take(wanted.size, alignment);
    }
    if (!wanted.base) continue;
    wanted.slot = device;
    return true;
  }
  return false;
}

CUresult reserve_on_device(lane& own, reservation& wanted, std::uint64_t alignment) {
  marshal::address_reply made;
  const CUresult code = call<api::opcode::cuMemAddressReserve>(
      {own, 0}, marshal::range_body{.size = wanted.size, .alignment = alignment}, made);
  if (code != CUDA_SUCCESS) return code;
  wanted.base = made.address;
  if (own.state().memory.claim_foreign(wanted.base, wanted.size)) return CUDA_SUCCESS;
  (void)call<api::opcode::cuMemAddressFree>({own, 0},
                                            marshal::range_body{.address = wanted.base, .size = wanted.size});
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult send_release(lane& own, std::uint64_t handle) {
  const bool keep = own.state().memory.shared.released(handle);
  const CUresult code =
      call<api::opcode::cuMemRelease>({own, 0}, marshal::release_body{.handle = handle, .keep = keep});
  allocations(own).release(handle);
  sweep_shared(own);
  return code;
}

/// The memory goes when neither a handle nor a mapping is left.
CUresult release_if_unused(lane& own, std::uint64_t handle, allocation_info& info) {
  return info.handles.load() == 0 && info.mappings.load() == 0 ? send_release(own, handle) : CUDA_SUCCESS;
}

void book(const lane& own, const placement& made, const allocation_info& info) {
  memory_block block;
  block.base = made.base;
  block.size = made.size;
  block.kind = memory_kind::virtual_range;
  block.closed = true;
  block.device = info.properties.location.id;
  own.state().memory.addresses.insert(block);
}

}  // namespace

CUresult ends::cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                   unsigned long long flags) {
  lane& own = this_lane();
  process& p = own.state();
  if (!ptr || size == 0 || !whole(size) || (alignment & (alignment - 1)) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservation made;
  made.size = size;
  const std::uint64_t aligned = std::max<std::uint64_t>(alignment, window_granule);
  if (size > 1ull << 47 || aligned > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!reserve_in_window(own, made, aligned, addr)) {
    if (const CUresult code = reserve_on_device(own, made, alignment); code != CUDA_SUCCESS) return code;
  }
  p.memory.virtual_memory.reserve(made);
  *ptr = made.base;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  lane& own = this_lane();
  process& p = own.state();
  const auto gone = p.memory.virtual_memory.free(ptr, size);
  if (!gone) return CUDA_ERROR_INVALID_VALUE;
  if (gone->slot >= 0) return p.memory.window.slot(gone->slot)->give_back(ptr, size), CUDA_SUCCESS;
  return call<api::opcode::cuMemAddressFree>({own, 0}, marshal::range_body{.address = ptr, .size = size});
}

CUresult ends::cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                           unsigned long long flags) {
  lane& own = this_lane();
  if (!handle || size == 0 || !whole(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check_properties(own, prop); code != CUDA_SUCCESS) return code;
  if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_PERMITTED;
  auto info = std::make_unique<allocation_info>();
  info->size = size;
  info->properties = *prop;
  const std::uint64_t id = allocations(own).reserve(std::move(info));
  if (!id) return CUDA_ERROR_OUT_OF_MEMORY;
  marshal::allocation_body body = body_of(*prop);
  body.handle = id;
  body.size = size;
  if (const CUresult code = call<api::opcode::cuMemCreate>({own, 0}, body); code != CUDA_SUCCESS)
    return allocations(own).release(id), code;
  *handle = id;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemRelease(CUmemGenericAllocationHandle handle) {
  lane& own = this_lane();
  allocation_info* info = held_allocation(own, handle);
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  info->handles.fetch_sub(1);
  return release_if_unused(own, handle, *info);
}

CUresult ends::cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                        unsigned long long flags) {
  lane& own = this_lane();
  process& p = own.state();
  allocation_info* info = held_allocation(own, handle);
  if (!info || size == 0 || !whole(ptr) || !whole(size) || !whole(offset) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (size > info->size || offset != 0) return CUDA_ERROR_NOT_SUPPORTED;  // as a 580 driver says it
  if (!p.memory.virtual_memory.place({ptr, size, handle})) return CUDA_ERROR_INVALID_VALUE;
  info->mappings.fetch_add(1);
  const CUresult code = call<api::opcode::cuMemMap>(
      {own, 0}, marshal::mapping_body{.address = ptr, .size = size, .offset = offset, .handle = handle});
  if (code == CUDA_SUCCESS) return book(own, {ptr, size, handle}, *info), code;
  p.memory.virtual_memory.displace(ptr, size);
  info->mappings.fetch_sub(1);
  return code;
}

CUresult ends::cuMemUnmap(CUdeviceptr ptr, size_t size) {
  lane& own = this_lane();
  process& p = own.state();
  const std::vector<placement> gone = p.memory.virtual_memory.displace(ptr, size);
  if (gone.empty()) return CUDA_ERROR_INVALID_VALUE;
  request r(typed<api::opcode::cuMemUnmap>, {own, 0}, marshal::range_body{.address = ptr, .size = size});
  CUresult code = r.call();
  for (const placement& was : gone) {
    p.memory.addresses.remove(was.base);
    allocation_info* info = find_allocation(own, was.handle);
    info->mappings.fetch_sub(1);
    const CUresult released = release_if_unused(own, was.handle, *info);
    if (code == CUDA_SUCCESS) code = released;
  }
  return code;
}

CUresult ends::cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  lane& own = this_lane();
  process& p = own.state();
  if (!desc || count == 0 || count > p.devices.count() || !p.memory.virtual_memory.tiled(ptr, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  marshal::access_body body{.address = ptr, .size = size};
  for (std::size_t i = 0; i < count; ++i) {
    const bool flags_ok = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                          desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                          desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!flags_ok || desc[i].location.type <= CU_MEM_LOCATION_TYPE_INVALID) return CUDA_ERROR_INVALID_VALUE;
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!p.devices.primary(desc[i].location.id)) return CUDA_ERROR_INVALID_VALUE;
    body.access.insert(body.access.end(), {static_cast<std::int32_t>(desc[i].location.type),
                                           desc[i].location.id, static_cast<std::int32_t>(desc[i].flags)});
  }
  const CUresult code = call<api::opcode::cuMemSetAccess>({own, 0}, body);
  const bool open = std::all_of(desc, desc + count, [](const CUmemAccessDesc& d) {
    return d.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  });
  if (code == CUDA_SUCCESS) p.memory.addresses.set_closed(ptr, size, !open);
  return code;
}

CUresult ends::cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                             CUmemAllocationGranularity_flags option) {
  lane& own = this_lane();
  process& p = own.state();
  const bool known =
      option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
  if (!granularity || !known) return CUDA_ERROR_INVALID_VALUE;
  const CUresult checked = check_properties(own, prop);
  // Drivers do not look at the device here.
  const bool no_such = checked == CUDA_ERROR_INVALID_DEVICE;
  if (checked != CUDA_SUCCESS && !no_such) return checked;
  // Asked before each allocation, and what the handle may be shared as does not change it.
  std::atomic<std::uint64_t>& cached =
      p.devices.primary(no_such ? 0 : prop->location.id)->granularity[option];
  std::uint64_t value = cached.load();
  if (!value) {
    marshal::allocation_body body = body_of(*prop);
    if (no_such) body.location = 0;
    body.option = option;
    marshal::value_reply asked;
    if (const CUresult code = call<api::opcode::cuMemGetAllocationGranularity>({own, 0}, body, asked);
        code != CUDA_SUCCESS)
      return code;
    cached.store(value = asked.value);
  }
  *granularity = value;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                      CUmemGenericAllocationHandle handle) {
  lane& own = this_lane();
  const allocation_info* info = held_allocation(own, handle);
  if (!prop || !info) return CUDA_ERROR_INVALID_VALUE;
  *prop = info->properties;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  lane& own = this_lane();
  process& p = own.state();
  const auto found = p.memory.virtual_memory.at(reinterpret_cast<std::uint64_t>(addr));
  if (!handle || !found) return CUDA_ERROR_INVALID_VALUE;
  find_allocation(own, found->handle)->handles.fetch_add(1);
  *handle = found->handle;
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
