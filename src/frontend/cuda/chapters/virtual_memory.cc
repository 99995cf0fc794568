// Chapter virtual memory: address ranges come from the window, so they mean the same after a rebuild; what is
// mapped in them is booked here and made on the server. The driver's checks of arguments are made here; a
// handle stays known while memory is mapped, because a program may retain it again by an address. Memory of
// the host is there where the server can give its pages to this process: both map them at the same address.
#include <algorithm>

#include "base/log.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/host_pages.hh"
#include "frontend/cuda/objects.hh"

namespace outboard::frontend::cuda {
namespace {

handle_table& allocations() { return process::instance().objects().handles(api::handle_kind::allocation); }

allocation_info* find_allocation(std::uint64_t handle) {
  return static_cast<allocation_info*>(allocations().find(handle));
}

/// Alive for the program: mapped memory whose last handle was released is not.
allocation_info* held_allocation(std::uint64_t handle) {
  allocation_info* info = find_allocation(handle);
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

/// A driver makes memory of a node that is named, exactly as it is asked for here.
CUresult check_of_host(const CUmemAllocationProp& prop) {
  if (!shares_host_memory()) {
    log::info(
        "cuMemCreate of the host's memory is refused: client and server share none (unix: and shm: do)");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool plain = prop.allocFlags.compressionType == 0 && prop.allocFlags.gpuDirectRDMACapable == 0;
  return prop.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && plain ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

/// Fabric handles are refused as a board refuses them that no fabric manager looks after.
CUresult check_properties(const CUmemAllocationProp* prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type <= CU_MEM_LOCATION_TYPE_INVALID ||
      prop->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (of_host(prop->location.type)) return check_of_host(*prop);
  if (!process::instance().objects().primary(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (prop->requestedHandleTypes & (CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/// From the window: the current device's slot first, then the others'.
bool reserve_in_window(const lane& own, reservation& wanted, std::uint64_t alignment, std::uint64_t hint) {
  process& p = process::instance();
  const auto devices = static_cast<int>(p.facts().devices.size());
  const int first = own.current() ? own.current()->device : 0;
  for (int i = 0; i < devices; ++i) {
    const int device = (first + i) % devices;
    slot_addresses* slot = p.memory().window_slot(device);
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
  request_of<api::opcode::cuMemAddressReserve> r(own, marshal::range_body{0, wanted.size, alignment});
  r.in_context(0);
  marshal::address_reply made;
  if (const CUresult code = r.call(made); code != CUDA_SUCCESS) return code;
  wanted.base = made.address;
  if (process::instance().memory().claim_foreign(wanted.base, wanted.size)) return CUDA_SUCCESS;
  request_of<api::opcode::cuMemAddressFree> undo(own, marshal::range_body{wanted.base, wanted.size, 0});
  undo.in_context(0);
  (void)undo.call();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult send_release(lane& own, std::uint64_t handle) {
  const bool keep = process::instance().memory().shared().released(handle);
  request_of<api::opcode::cuMemRelease> r(own, marshal::release_body{handle, keep});
  r.in_context(0);
  const CUresult code = r.call();
  allocations().release(handle);
  sweep_shared(own);
  return code;
}

/// The memory goes when neither a handle nor a mapping is left.
CUresult end_use(lane& own, std::uint64_t handle, allocation_info& info) {
  return info.uses.fetch_sub(1) == 1 ? send_release(own, handle) : CUDA_SUCCESS;
}

void book(const placement& made, const allocation_info& info) {
  memory_block block;
  block.base = made.base;
  block.size = made.size;
  block.kind = made.host ? memory_kind::host_range : memory_kind::virtual_range;
  block.closed = !made.host;
  // Memory of a device that is hidden from us has no number (-2), and counts as the first one's.
  block.device = made.host ? 0 : std::max(info.properties.location.id, 0);
  process::instance().memory().addresses().insert(block);
}

CUresult unmap_on_server(lane& own, std::uint64_t base, std::uint64_t size) {
  request_of<api::opcode::cuMemUnmap> r(own, marshal::range_body{base, size, 0});
  r.in_context(0);
  return r.call();
}

/// Placements that lie side by side are one range.
std::vector<std::pair<std::uint64_t, std::uint64_t>> runs_of(const std::vector<placement>& placements) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const placement& p : placements) {
    if (!runs.empty() && runs.back().first + runs.back().second == p.base) {
      runs.back().second += p.size;
    } else {
      runs.emplace_back(p.base, p.size);
    }
  }
  return runs;
}

CUresult check_access(const CUmemAccessDesc& desc, bool to_host_memory) {
  const bool flags_ok = desc.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                        desc.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                        desc.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (!flags_ok || desc.location.type <= CU_MEM_LOCATION_TYPE_INVALID) return CUDA_ERROR_INVALID_VALUE;
  if (to_host_memory && of_host(desc.location.type)) {
    return desc.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
  }
  if (desc.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return process::instance().objects().primary(desc.location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ends::cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                   unsigned long long flags) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
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
  p.memory().virtual_memory().reserve(made);
  *ptr = made.base;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  const auto gone = p.memory().virtual_memory().free(ptr, size);
  if (!gone) return CUDA_ERROR_INVALID_VALUE;
  if (gone->slot >= 0) return p.memory().window_slot(gone->slot)->give_back(ptr, size), CUDA_SUCCESS;
  request_of<api::opcode::cuMemAddressFree> r(own, marshal::range_body{ptr, size, 0});
  r.in_context(0);
  return r.call();
}

CUresult ends::cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                           unsigned long long flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!handle || size == 0 || !whole(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check_properties(prop); code != CUDA_SUCCESS) return code;
  if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_PERMITTED;
  auto info = std::make_unique<allocation_info>();
  info->size = size;
  info->properties = *prop;
  allocation_info* const memory = info.get();
  const std::uint64_t id = allocations().reserve(std::move(info));
  if (!id) return CUDA_ERROR_OUT_OF_MEMORY;
  marshal::allocation_body body = body_of(*prop);
  body.handle = id;
  body.size = size;
  CUresult code = CUDA_SUCCESS;
  if (of_host(prop->location.type)) {
    std::vector<std::byte> reply;
    code = call_for_pages<api::opcode::cuMemCreate>(own, body, reply, memory->pages);
    if (code == CUDA_SUCCESS && !memory->pages) code = malformed_reply(api::opcode::cuMemCreate);
  } else {
    request_of<api::opcode::cuMemCreate> r(own, body);
    r.in_context(0);
    code = r.call();
  }
  if (code != CUDA_SUCCESS) return allocations().release(id), code;
  *handle = id;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemRelease(CUmemGenericAllocationHandle handle) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  allocation_info* info = held_allocation(handle);
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  info->handles.fetch_sub(1);
  return end_use(own, handle, *info);
}

CUresult ends::cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                        unsigned long long flags) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  allocation_info* info = held_allocation(handle);
  if (!info || size == 0 || !whole(ptr) || !whole(size) || !whole(offset) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (size > info->size || offset != 0) return CUDA_ERROR_NOT_SUPPORTED;  // as a 580 driver says it
  const placement wanted{ptr, size, handle, static_cast<bool>(info->pages)};
  if (!p.memory().virtual_memory().place(wanted)) return CUDA_ERROR_INVALID_VALUE;
  info->uses.fetch_add(1);
  request_of<api::opcode::cuMemMap> r(own, marshal::mapping_body{ptr, size, offset, handle});
  r.in_context(0);
  CUresult code = r.call();
  if (code == CUDA_SUCCESS && wanted.host && !map_pages(wanted, info->pages.get())) {
    unmap_pages(wanted);
    (void)unmap_on_server(own, ptr, size);
    code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (code == CUDA_SUCCESS) return book(wanted, *info), code;
  p.memory().virtual_memory().withdraw(ptr);
  (void)end_use(own, handle, *info);
  return code;
}

CUresult ends::cuMemUnmap(CUdeviceptr ptr, size_t size) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  const auto gone =
      whole(ptr) && whole(size) ? p.memory().virtual_memory().displace(ptr, size) : std::nullopt;
  if (!gone) return CUDA_ERROR_INVALID_VALUE;
  CUresult code = CUDA_SUCCESS;
  for (const auto& [base, bytes] : runs_of(*gone)) {
    const CUresult unmapped = unmap_on_server(own, base, bytes);
    if (code == CUDA_SUCCESS) code = unmapped;
  }
  for (const placement& was : *gone) {
    p.memory().addresses().remove(was.base);
    if (was.host) unmap_pages(was);
    allocation_info* info = find_allocation(was.handle);
    const CUresult released = end_use(own, was.handle, *info);
    if (code == CUDA_SUCCESS) code = released;
  }
  return code;
}

CUresult ends::cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  if (!desc || count == 0 || !p.memory().virtual_memory().tiled(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<placement> all = p.memory().virtual_memory().within(ptr, size);
  const bool host = std::all_of(all.begin(), all.end(), [](const placement& made) { return made.host; });
  if (count > p.facts().devices.size() + (host ? 1 : 0)) return CUDA_ERROR_INVALID_VALUE;
  marshal::access_body body{ptr, size, {}};
  for (const CUmemAccessDesc& d : std::span(desc, count)) {
    if (const CUresult code = check_access(d, host); code != CUDA_SUCCESS) return code;
    if (d.location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    body.access.insert(body.access.end(), {static_cast<std::int32_t>(d.location.type), d.location.id,
                                           static_cast<std::int32_t>(d.flags)});
  }
  CUresult code = CUDA_SUCCESS;
  if (!body.access.empty()) {
    request_of<api::opcode::cuMemSetAccess> r(own, body);
    r.in_context(0);
    code = r.call();
  }
  if (code != CUDA_SUCCESS) {
    p.memory().addresses().set_closed(ptr, size,
                                      true);  // some of it may be: then work there waits for the answer
    return code;
  }
  for (const placement& made : all) {
    for (std::size_t i = 0; made.host && i < count && code == CUDA_SUCCESS; ++i)
      code = open_to(made, desc[i]);
  }
  const bool open = std::all_of(desc, desc + count, [](const CUmemAccessDesc& d) {
    return d.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  });
  p.memory().addresses().set_closed(ptr, size, !open);
  return code;
}

CUresult ends::cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  const auto found = p.memory().virtual_memory().at(ptr);
  if (found && found->host) {
    const bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && p.objects().primary(location->id);
    const bool host = of_host(location->type) && location->type != CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (!device && !host) return CUDA_ERROR_INVALID_DEVICE;
    const auto known = found->access.find(location_of(*location));
    return *flags = known == found->access.end() ? 0 : known->second, CUDA_SUCCESS;
  }
  request_of<api::opcode::cuMemGetAccess> r(
      own, marshal::access_question_body{static_cast<std::int32_t>(location->type), location->id, ptr});
  r.in_context(0);
  marshal::number_reply allowed;
  const CUresult code = r.call(allowed);
  if (code == CUDA_SUCCESS) *flags = static_cast<unsigned long long>(allowed.value);
  return code;
}

CUresult ends::cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                             CUmemAllocationGranularity_flags option) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  const bool known =
      option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
  if (!granularity || !known) return CUDA_ERROR_INVALID_VALUE;
  const CUresult checked = check_properties(prop);
  // A driver does not look which device it is. Of the host's memory it is the same, and said also where none
  // is to be had: NCCL asks first, takes no answer for "yes", and goes by /dev/shm where cuMemCreate refuses.
  const bool host = prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED && of_host(prop->location.type);
  const bool any_device = checked == CUDA_ERROR_INVALID_DEVICE || host;
  if (checked != CUDA_SUCCESS && !any_device) return checked;
  // Asked before each allocation, and what the handle may be shared as does not change it.
  std::atomic<std::uint64_t>& cached =
      p.objects().primary(any_device ? 0 : prop->location.id)->granularity[option];
  std::uint64_t value = cached.load();
  if (!value) {
    marshal::allocation_body body = body_of(*prop);
    if (any_device) body.location_type = CU_MEM_LOCATION_TYPE_DEVICE, body.location = 0;
    body.option = option;
    request_of<api::opcode::cuMemGetAllocationGranularity> r(own, body);
    r.in_context(0);
    marshal::number_reply found;
    if (const CUresult code = r.call(found); code != CUDA_SUCCESS) return code;
    value = static_cast<std::uint64_t>(found.value);
    cached.store(value);
  }
  *granularity = value;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                      CUmemGenericAllocationHandle handle) {
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  const allocation_info* info = held_allocation(handle);
  if (!prop || !info) return CUDA_ERROR_INVALID_VALUE;
  *prop = info->properties;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  const auto found = p.memory().virtual_memory().at(reinterpret_cast<std::uint64_t>(addr));
  if (!handle || !found) return CUDA_ERROR_INVALID_VALUE;
  allocation_info* const info = find_allocation(found->handle);
  info->uses.fetch_add(1);
  info->handles.fetch_add(1);
  *handle = found->handle;
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
