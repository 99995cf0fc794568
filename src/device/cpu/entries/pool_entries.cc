// Entries of the chapter memory pool: stream-ordered allocation and the pools behind it.
#include "device/cpu/graph/capture.hh"
#include "device/cpu/graph/graph_nodes.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

bool on_this_device(const CUmemLocation& where) {
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE && where.id == 0;
}

std::uint64_t value(CUmemoryPool handle) { return reinterpret_cast<std::uint64_t>(handle); }

template <class Body>
CUresult with_pool(CUmemoryPool handle, Body&& body) {
  return after_init([&]() -> CUresult {
    const pool_ptr p = here().pools.find(value(handle));
    return p ? body(*p) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// Given out at once, earlier than the stream asks for; what waits to be freed, or is kept by a pool, is
/// asked for only when short.
CUresult allocate(pool& from, const context_ptr& c, std::uint64_t size, CUdeviceptr* out) {
  std::uint64_t address = 0;
  CUresult r = from.allocate(size, c->id, address);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    here().work.synchronize(c->group);
    here().pools.trim_all();
    r = from.allocate(size, c->id, address);
  }
  if (r == CUDA_SUCCESS) *out = address;
  return r;
}

/// Under capture the memory belongs to the graph, which gives it its address now.
CUresult capture_allocation(stream& s, std::size_t size, CUdeviceptr* out) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.bytesize = size;
  const std::lock_guard lock(here().graphs_mutex);
  node_work work;
  CUresult r = make_allocation(p, work);
  if (r == CUDA_SUCCESS) r = capture_node(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, std::move(work));
  if (r == CUDA_SUCCESS) *out = p.dptr;
  return r;
}

CUresult capture_release(stream& s, CUdeviceptr address) {
  const std::lock_guard lock(here().graphs_mutex);
  node_work work;
  const CUresult r = make_release(address, work);
  return r == CUDA_SUCCESS ? capture_node(s, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(work)) : r;
}

CUresult allocate_on(CUdeviceptr* out, std::size_t size, std::uint64_t handle, CUstream stream,
                     bool per_thread) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    stream_ptr s;
    if (const CUresult r = stream_of(c, stream, per_thread, s); r != CUDA_SUCCESS) return r;
    const pool_ptr p = here().pools.find(handle);
    if (p && s->capturing()) return capture_allocation(*s, size, out);
    if (const CUresult r = capture_forbids_unsafe(); r != CUDA_SUCCESS) return r;
    return p ? allocate(*p, c, size, out) : CUDA_ERROR_INVALID_VALUE;
  });
}

template <bool PerThread>
CUresult alloc_async(CUdeviceptr* out, std::size_t size, CUstream s) {
  return allocate_on(out, size, here().pools.current(), s, PerThread);
}

template <bool PerThread>
CUresult alloc_from_pool_async(CUdeviceptr* out, std::size_t size, CUmemoryPool p, CUstream s) {
  return allocate_on(out, size, value(p), s, PerThread);
}

/// cuMemAlloc's memory may be freed in stream order as well.
void release(const region& block) {
  machine& m = here();
  if (const pool_ptr p = m.pools.owner_of(block)) {
    p->release(block.begin, block.id);
    m.pools.settle(block);
    return;
  }
  const auto still = m.store->lookup(block.begin);
  if (still && still->id == block.id) static_cast<void>(m.store->release(block.begin));
}

template <bool PerThread>
CUresult free_async(CUdeviceptr address, CUstream handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, handle, PerThread, s); r != CUDA_SUCCESS) return r;
    if (s->capturing()) return capture_release(*s, address);
    if (const CUresult r = capture_forbids_unsafe(); r != CUDA_SUCCESS) return r;
    const auto block = here().store->lookup(address);
    if (!block || block->begin != address) return CUDA_ERROR_INVALID_VALUE;
    if (block->owner == 0) {
      const std::lock_guard lock(here().graphs_mutex);
      graph_block_ptr freed = here().graph_blocks.free(address);
      if (freed == nullptr) return CUDA_ERROR_INVALID_VALUE;
      here().work.submit(s, make_task([kept = std::move(freed)] { return CUDA_SUCCESS; }));
      return CUDA_SUCCESS;
    }
    if (!here().store->leave(address, block->id)) return CUDA_ERROR_INVALID_VALUE;
    here().work.submit(s, make_task([freed = *block] { return release(freed), CUDA_SUCCESS; }));
    return CUDA_SUCCESS;
  });
}

CUresult create(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(properties->location)) return CUDA_ERROR_INVALID_DEVICE;
    // Attribute 119 says what can be exported.
    if ((properties->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    const std::uint64_t made = here().pools.create(*properties);
    if (made == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    return *out = reinterpret_cast<CUmemoryPool>(made), CUDA_SUCCESS;
  });
}

CUresult destroy(CUmemoryPool handle) {
  return after_init(
      [&] { return here().pools.destroy(value(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

CUresult trim(CUmemoryPool handle, std::size_t keep) {
  return with_pool(handle, [&](pool& p) { return p.trim(keep), CUDA_SUCCESS; });
}

CUresult set_attribute(CUmemoryPool handle, CUmemPool_attribute which, void* from) {
  return with_pool(handle, [&](pool& p) { return from ? p.set(which, from) : CUDA_ERROR_INVALID_VALUE; });
}

CUresult get_attribute(CUmemoryPool handle, CUmemPool_attribute which, void* out) {
  return with_pool(handle, [&](pool& p) { return out ? p.get(which, out) : CUDA_ERROR_INVALID_VALUE; });
}

/// The one device always has access to its own pools, and there is no other.
CUresult set_access(CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count) {
  return with_pool(handle, [&](pool&) -> CUresult {
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      // A device keeps the access to its own memory.
      const bool taken = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
      if (!on_this_device(access[i].location) || taken) return CUDA_ERROR_INVALID_DEVICE;
      if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult get_access(CUmemAccess_flags* out, CUmemoryPool handle, CUmemLocation* where) {
  return with_pool(handle, [&](pool&) -> CUresult {
    if (out == nullptr || where == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!on_this_device(*where)) return CUDA_ERROR_INVALID_VALUE;
    return *out = CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CUDA_SUCCESS;
  });
}

CUresult give_pool(CUmemoryPool* out, CUdevice device, std::uint64_t handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return *out = reinterpret_cast<CUmemoryPool>(handle), CUDA_SUCCESS;
}

CUresult device_default(CUmemoryPool* out, CUdevice device) {
  return after_init([&] { return give_pool(out, device, here().pools.standard()); });
}

CUresult device_get(CUmemoryPool* out, CUdevice device) {
  return after_init([&] { return give_pool(out, device, here().pools.current()); });
}

CUresult device_set(CUdevice device, CUmemoryPool handle) {
  return after_init(
      [&] { return device != 0 ? CUDA_ERROR_INVALID_DEVICE : here().pools.make_current(value(handle)); });
}

// --- between processes

CUresult export_pool(void* out, CUmemoryPool handle, CUmemAllocationHandleType type,
                     unsigned long long flags) {
  return with_pool(handle, [&](pool& p) -> CUresult {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    unique_fd fd;
    const CUresult r = p.export_to(fd);
    if (r == CUDA_SUCCESS) *static_cast<int*>(out) = fd.release();
    return r;
  });
}

CUresult import_pool(CUmemoryPool* out, void* from, CUmemAllocationHandleType type,
                     unsigned long long flags) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t made = here().pools.import(static_cast<int>(reinterpret_cast<std::intptr_t>(from)));
    if (made == 0) return CUDA_ERROR_UNKNOWN;  // as the driver says of a stranger's descriptor
    return *out = reinterpret_cast<CUmemoryPool>(made), CUDA_SUCCESS;
  });
}

CUresult export_pointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  return after_init([&]() -> CUresult {
    const auto block = here().store->lookup(address);
    const pool_ptr from = block ? here().pools.owner_of(*block) : nullptr;
    if (out == nullptr || from == nullptr || block->begin != address) return CUDA_ERROR_INVALID_VALUE;
    return from->export_pointer(address, *out);
  });
}

CUresult import_pointer(CUdeviceptr* out, CUmemoryPool handle, CUmemPoolPtrExportData* from) {
  return with_pool(handle, [&](pool& p) -> CUresult {
    if (out == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    context_ptr c;
    static_cast<void>(current_context(c));
    const CUresult r = p.import_pointer(*from, c ? c->id : here().primary->id, address);
    if (r == CUDA_SUCCESS) *out = address;
    return r;
  });
}

}  // namespace

void fill_pool_entries(api::driver_table& t) {
  t.cuMemAllocAsync = alloc_async<false>;
  t.cuMemAllocAsync_ptsz = alloc_async<true>;
  t.cuMemAllocFromPoolAsync = alloc_from_pool_async<false>;
  t.cuMemAllocFromPoolAsync_ptsz = alloc_from_pool_async<true>;
  t.cuMemFreeAsync = free_async<false>;
  t.cuMemFreeAsync_ptsz = free_async<true>;
  t.cuMemPoolCreate = create;
  t.cuMemPoolDestroy = destroy;
  t.cuMemPoolTrimTo = trim;
  t.cuMemPoolSetAttribute = set_attribute;
  t.cuMemPoolGetAttribute = get_attribute;
  t.cuMemPoolSetAccess = set_access;
  t.cuMemPoolGetAccess = get_access;
  t.cuDeviceGetDefaultMemPool = device_default;
  t.cuDeviceGetMemPool = device_get;
  t.cuDeviceSetMemPool = device_set;
  t.cuMemPoolExportToShareableHandle = export_pool;
  t.cuMemPoolImportFromShareableHandle = import_pool;
  t.cuMemPoolExportPointer = export_pointer;
  t.cuMemPoolImportPointer = import_pointer;
}

}  // namespace outboard::device::cpu
