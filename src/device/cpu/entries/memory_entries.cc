// Entries of the chapter memory that allocate and free, on the device and on the host.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUresult allocate(const context_ptr& c, std::uint64_t size, memory_kind kind, unsigned flags,
                  CUdeviceptr* out) {
  std::uint64_t address = 0;
  const CUresult r = here().store->allocate(size, 0, kind, c->id, flags, address);
  if (r == CUDA_SUCCESS) *out = address;
  return r;
}

CUresult mem_alloc(CUdeviceptr* out, std::size_t size) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate(c, size, memory_kind::device, 0, out);
  });
}

CUresult mem_alloc_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                         unsigned element) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t row = (width + memory::alignment - 1) / memory::alignment * memory::alignment;
    if (row < width || height > ~std::size_t{0} / row) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult r = allocate(c, row * height, memory_kind::device, 0, out);
    if (r == CUDA_SUCCESS) *pitch = row;
    return r;
  });
}

CUresult mem_alloc_managed(CUdeviceptr* out, std::size_t size, unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (out == nullptr || size == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
    return allocate(c, size, memory_kind::managed, flags, out);
  });
}

/// Frees wait for the device, as the driver's do: no kernel of the program can then still use the memory.
CUresult mem_free(CUdeviceptr address) {
  return after_init([&]() -> CUresult {
    if (address == 0) return CUDA_SUCCESS;
    machine& m = here();
    const auto block = m.store->lookup(address);
    if (!block || block->begin != address) return CUDA_ERROR_INVALID_VALUE;
    context_ptr c;
    if (const CUresult r = current_context(c); r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_CONTEXT) return r;
    for (const auto& [handle, owner] : m.contexts.all()) {
      if (owner->id == block->owner || block->owner == 0) m.work.synchronize(owner->group);
    }
    if (block->owner == 0) {
      const std::lock_guard lock(m.graphs_mutex);
      return m.graph_blocks.free(address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    const pool_ptr from = m.pools.owner_of(*block);
    if (block->kind == memory_kind::managed) m.advice.forget(block->begin, block->size);
    const CUresult r = !from                               ? m.store->release(address)
                       : from->release(address, block->id) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
    if (from) m.pools.settle(*block);
    return c != nullptr && c->error() != CUDA_SUCCESS ? static_cast<CUresult>(c->error()) : r;
  });
}

CUresult mem_get_info(std::size_t* free, std::size_t* total) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const memory& store = *here().store;
    if (free != nullptr) *free = store.total() - store.used();
    if (total != nullptr) *total = store.total();
    return CUDA_SUCCESS;
  });
}

CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto block = here().store->lookup(address);
    if (!block) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = block->begin;
    if (size != nullptr) *size = block->size;
    return CUDA_SUCCESS;
  });
}

// --- host
// -----------------------------------------------------------------------------------------------------------

constexpr unsigned host_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

CUresult host_alloc(void** out, std::size_t size, unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || size == 0 || (flags & ~host_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult r = here().store->host_allocate(size, c->id, flags, address);
    if (r == CUDA_SUCCESS) *out = reinterpret_cast<void*>(address);
    return r;
  });
}

CUresult host_alloc_plain(void** out, std::size_t size) { return host_alloc(out, size, 0); }

CUresult host_free(void* block) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    here().work.synchronize(c->group);
    return here().store->host_release(reinterpret_cast<std::uint64_t>(block));
  });
}

CUresult host_register(void* block, std::size_t size, unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    constexpr unsigned known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    return here().store->host_register(reinterpret_cast<std::uint64_t>(block), size, c->id, flags);
  });
}

CUresult host_unregister(void* block) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    here().work.synchronize(c->group);
    return here().store->host_unregister(reinterpret_cast<std::uint64_t>(block));
  });
}

CUresult host_get_device_pointer(CUdeviceptr* out, void* block, unsigned flags) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto found = here().store->lookup(reinterpret_cast<std::uint64_t>(block));
    if (!found || (found->kind != memory_kind::host && found->kind != memory_kind::registered)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return *out = reinterpret_cast<CUdeviceptr>(block), CUDA_SUCCESS;
  });
}

CUresult host_get_flags(unsigned* out, void* block) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto found = here().store->lookup(reinterpret_cast<std::uint64_t>(block));
    if (out == nullptr || !found || found->kind != memory_kind::host) return CUDA_ERROR_INVALID_VALUE;
    // Everything is mapped where addresses are unified; the driver reports it too.
    return *out = found->flags | CU_MEMHOSTALLOC_DEVICEMAP, CUDA_SUCCESS;
  });
}

}  // namespace

void fill_memory_entries(api::driver_table& t) {
  t.cuMemAlloc_v2 = mem_alloc;
  t.cuMemAllocPitch_v2 = mem_alloc_pitch;
  t.cuMemAllocManaged = mem_alloc_managed;
  t.cuMemFree_v2 = mem_free;
  t.cuMemGetInfo_v2 = mem_get_info;
  t.cuMemGetAddressRange_v2 = mem_get_address_range;
  t.cuMemHostAlloc = host_alloc;
  t.cuMemAllocHost_v2 = host_alloc_plain;
  t.cuMemFreeHost = host_free;
  t.cuMemHostRegister = t.cuMemHostRegister_v2 = host_register;
  t.cuMemHostUnregister = host_unregister;
  t.cuMemHostGetDevicePointer_v2 = host_get_device_pointer;
  t.cuMemHostGetFlags = host_get_flags;
}

}  // namespace outboard::device::cpu
