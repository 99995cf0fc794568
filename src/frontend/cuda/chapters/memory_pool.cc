// Chapter memory pool: stream-ordered allocation and the pools that programs see. The handle of each device's
// default pool is chosen here like any other, at its first use.
#include <cstring>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/remote.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

std::uint64_t current_pool(const lane& own, std::int32_t device) {
  context_state* primary = own.state().devices.primary(device);
  const std::uint64_t set = primary->current_pool.load();
  // A pool that was set and then destroyed gives way to the default one.
  return set && find_object<pool_info>(own, reinterpret_cast<CUmemoryPool>(set))
             ? set
             : primary->default_pool.load();
}

/// The stream under which a freed block may be kept for the next allocation; nothing: frees there are sent. A
/// capture makes nodes of both, and the default stream of a thread is another one in each thread.
std::optional<std::uint64_t> keeping_stream(const lane& own, CUstream stream, bool per_thread) {
  if (any_capture_open() || own.state().connection.synchronous()) return std::nullopt;
  if (!default_stream(stream)) return value_of(stream);
  if (per_thread || stream == CU_STREAM_PER_THREAD) return std::nullopt;
  return 0;
}

/// Another process sees what is allocated of a pool that is shared.
bool alone_in(const lane& own, std::uint64_t pool) {
  if (pool == 0) return true;  // the default one, which nobody has named yet
  const auto* info = find_object<pool_info>(own, reinterpret_cast<CUmemoryPool>(pool));
  return info && !info->exportable && !info->imported;
}

struct allocation {
  std::size_t size = 0;
  std::uint64_t pool = 0;  ///< 0: the device's current one
  CUstream stream = nullptr;
  bool per_thread = false;
};

CUresult allocate(lane& own, CUdeviceptr* address, const allocation& wanted) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, wanted.stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (wanted.size == 0) return *address = 0, CUDA_SUCCESS;
  memory_block block;
  block.size = wanted.size;
  block.kind = memory_kind::pool;
  block.context = own.context_handle();
  block.device = own.current()->device;
  block.pool = wanted.pool ? wanted.pool : current_pool(own, block.device);
  process& p = own.state();
  if (const auto stream = keeping_stream(own, wanted.stream, wanted.per_thread)) {
    if (const auto again = p.memory.freed.take({block, *stream, 0})) {
      p.memory.addresses.insert(*again);
      return *address = again->base, CUDA_SUCCESS;
    }
  }
  request r(typed<api::opcode::cuMemAllocAsync>, own,
            marshal::pool_body{.size = wanted.size,
                               .stream = value_of(wanted.stream),
                               .pool = wanted.pool,
                               .per_thread = wanted.per_thread});
  marshal::address_reply made;
  freed_blocks& freed = p.memory.freed;
  if (freed.any()) freed.make_room(*p.connection.server(), own.id);
  CUresult code = r.call(made);
  if (code == CUDA_ERROR_OUT_OF_MEMORY && freed.any()) {
    freed.send(*p.connection.server(), own.id);
    code = r.call(made);
  }
  if (code != CUDA_SUCCESS) return code;
  block.base = made.address;
  const bool captured = stream_captures(own, wanted.stream, wanted.per_thread);
  if (captured) p.memory.use_graph_memory();
  code = captured ? p.memory.insert_graph_memory(block) : p.memory.insert_foreign(block);
  if (code != CUDA_SUCCESS) return code;
  *address = made.address;
  return CUDA_SUCCESS;
}

CUresult allocate_from(lane& own, CUdeviceptr* address, const allocation& wanted) {
  const bool alive = find_object<pool_info>(own, reinterpret_cast<CUmemoryPool>(wanted.pool)) != nullptr;
  return alive ? allocate(own, address, wanted) : CUDA_ERROR_INVALID_VALUE;
}

CUresult release(lane& own, CUdeviceptr address, CUstream stream, bool per_thread) {
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (address == 0) return CUDA_SUCCESS;
  address_table& addresses = own.state().memory.addresses;
  const auto block = addresses.find(address);
  const bool ours = block && block->base == address && !is_host(block->kind);
  if (block && (block->kind == memory_kind::managed || block->kind == memory_kind::virtual_range ||
                block->kind == memory_kind::imported || is_host(block->kind))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ours && block->kind == memory_kind::device) {
    // The block is not the capture's, which stays valid after this refusal.
    if (stream_captures(own, stream, per_thread)) return CUDA_ERROR_INVALID_VALUE;
    // cuMemAlloc's memory is not in the driver's pools here: it is freed once the stream has reached this.
    const CUresult code = per_thread ? remote<api::opcode::cuStreamSynchronize_ptsz>(stream)
                                     : remote<api::opcode::cuStreamSynchronize>(stream);
    return code == CUDA_SUCCESS ? ends::cuMemFree_v2(address) : code;
  }
  request r(typed<api::opcode::cuMemFreeAsync>, own,
            marshal::pool_body{.address = address, .stream = value_of(stream), .per_thread = per_thread});
  if (!ours || block->kind != memory_kind::pool || any_capture_open()) return r.call();
  if (!addresses.remove(address)) return r.call();  // another thread freed it first
  const auto kept_under = keeping_stream(own, stream, per_thread);
  process& p = own.state();
  if (kept_under && alone_in(own, block->pool) &&
      p.memory.freed.keep({*block, *kept_under, own.running_context()})) {
    // For the thread that waits next it is work like any other: then it is sent, and the pool may let go of
    // it.
    p.work.note(own.id);
    return CUDA_SUCCESS;
  }
  return r.post();
}

std::uint64_t reserve_pool(const lane& own, std::int32_t device, bool exportable = false) {
  auto info = std::make_unique<pool_info>();
  info->device = device;
  info->exportable = exportable;
  return own.state().handles[api::handle_kind::memory_pool].reserve(std::move(info));
}

void forget_pool(const lane& own, std::uint64_t handle) {
  own.state().handles[api::handle_kind::memory_pool].release(handle);
}

/// The default pool of a device, made known to the server at its first use.
CUresult default_pool(lane& own, context_state& primary, std::uint64_t& out) {
  if ((out = primary.default_pool.load())) return CUDA_SUCCESS;
  const std::uint64_t handle = reserve_pool(own, primary.device);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult code = call<api::opcode::cuDeviceGetDefaultMemPool>(
          {own, 0}, marshal::context_body{.handle = handle, .device = primary.device});
      code != CUDA_SUCCESS)
    return forget_pool(own, handle), code;
  std::uint64_t none = 0;
  if (primary.default_pool.compare_exchange_strong(none, handle)) return out = handle, CUDA_SUCCESS;
  forget_pool(own, handle);  // another thread was first
  return out = none, CUDA_SUCCESS;
}

/// Null check, device; `give` chooses the pool.
template <class Give>
CUresult with_device(const void* out, CUdevice device, Give&& give,
                     CUresult no_such = CUDA_ERROR_INVALID_VALUE) {
  lane& own = this_lane();
  process& p = own.state();
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  context_state* primary = p.devices.primary(device);
  return primary ? give(own, *primary) : no_such;
}

/// The device that a location and a type mean: only pinned memory of devices has pools here (attributes 132
/// and 134 of the device say so).
CUresult device_of(const CUmemLocation* where, CUmemAllocationType type, CUdevice& device) {
  if (!where || where->type == CU_MEM_LOCATION_TYPE_INVALID || type == CU_MEM_ALLOCATION_TYPE_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (where->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return device = where->id, CUDA_SUCCESS;
}

bool holds_int(CUmemPool_attribute which) {
  return which == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         which == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         which == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

bool is_peak(CUmemPool_attribute which) {
  return which == CU_MEMPOOL_ATTR_USED_MEM_HIGH || which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
}

CUresult check_attribute(const lane& own, CUmemoryPool pool, CUmemPool_attribute which, const void* value) {
  const bool known =
      which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  return known && value && find_object<pool_info>(own, pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

namespace ends {

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  return allocate(own, address, {size, 0, stream, false});
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  return allocate(own, address, {size, 0, stream, true});
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t size, CUmemoryPool pool, CUstream stream) {
  lane& own = this_lane();
  return allocate_from(own, address, {size, value_of(pool), stream, false});
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, std::size_t size, CUmemoryPool pool,
                                      CUstream stream) {
  lane& own = this_lane();
  return allocate_from(own, address, {size, value_of(pool), stream, true});
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  return release(own, address, stream, false);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  return release(own, address, stream, true);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wanted) {
  lane& own = this_lane();
  if (!pool || !wanted) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->location.type == CU_MEM_LOCATION_TYPE_INVALID) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
      !own.state().devices.primary(wanted->location.id)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool exportable = wanted->handleTypes != 0;
  const std::uint64_t handle = reserve_pool(own, wanted->location.id, exportable);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  marshal::pool_create_body body;
  body.handle = handle;
  body.max_size = wanted->maxSize;
  body.type = wanted->allocType;
  body.handle_types = wanted->handleTypes;
  body.location_type = wanted->location.type;
  body.location = wanted->location.id;
  body.usage = wanted->usage;
  if (const CUresult code = call<api::opcode::cuMemPoolCreate>(own, body); code != CUDA_SUCCESS)
    return forget_pool(own, handle), code;
  *pool = reinterpret_cast<CUmemoryPool>(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  lane& own = this_lane();
  if (const CUresult code = check_attribute(own, pool, which, value); code != CUDA_SUCCESS) return code;
  if (is_peak(which)) own.state().memory.freed.be_exact();
  marshal::pool_attribute_body body{.pool = value_of(pool), .attribute = which};
  std::memcpy(&body.value, value, holds_int(which) ? sizeof(int) : sizeof(cuuint64_t));
  return call<api::opcode::cuMemPoolSetAttribute>(own, body);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  lane& own = this_lane();
  if (const CUresult code = check_attribute(own, pool, which, value); code != CUDA_SUCCESS) return code;
  if (is_peak(which)) own.state().memory.freed.be_exact();
  marshal::value_reply got;
  if (const CUresult code = call<api::opcode::cuMemPoolGetAttribute>(
          own, marshal::pool_attribute_body{.pool = value_of(pool), .attribute = which}, got);
      code != CUDA_SUCCESS)
    return code;
  std::memcpy(value, &got.value, holds_int(which) ? sizeof(int) : sizeof(cuuint64_t));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return with_device(
      out, device,
      [&](lane& own, context_state& primary) {
        std::uint64_t handle = 0;
        const CUresult code = default_pool(own, primary, handle);
        if (code == CUDA_SUCCESS) *out = reinterpret_cast<CUmemoryPool>(handle);
        return code;
      },
      CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  lane& own = this_lane();
  return with_device(out, device, [&](lane&, context_state& primary) -> CUresult {
    const std::uint64_t set = primary.current_pool.load();
    if (!set || !find_object<pool_info>(own, reinterpret_cast<CUmemoryPool>(set))) {
      return ends::cuDeviceGetDefaultMemPool(out, device);
    }
    return *out = reinterpret_cast<CUmemoryPool>(set), CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return with_device(pool, device, [&](lane& own, context_state& primary) -> CUresult {
    const pool_info* info = find_object<pool_info>(own, pool);
    if (!info || info->device != device) return CUDA_ERROR_INVALID_VALUE;
    const CUresult code = call<api::opcode::cuDeviceSetMemPool>(
        {own, 0}, marshal::context_body{.handle = value_of(pool), .device = device});
    if (code == CUDA_SUCCESS) primary.current_pool.store(value_of(pool));
    return code;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* where, CUmemAllocationType type) {
  lane& own = this_lane();
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  if (code != CUDA_SUCCESS) return code;
  if (!own.state().devices.primary(device)) return CUDA_ERROR_INVALID_VALUE;
  return gated<api::opcode::cuDeviceGetDefaultMemPool>(
      own, [&] { return ends::cuDeviceGetDefaultMemPool(out, device); });
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* where, CUmemAllocationType type) {
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  if (code != CUDA_SUCCESS) return code;
  return gated<api::opcode::cuDeviceGetMemPool>(this_lane(),
                                                [&] { return ends::cuDeviceGetMemPool(out, device); });
}

CUresult cuMemSetMemPool(CUmemLocation* where, CUmemAllocationType type, CUmemoryPool pool) {
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  if (code != CUDA_SUCCESS) return code;
  return gated<api::opcode::cuDeviceSetMemPool>(this_lane(),
                                                [&] { return ends::cuDeviceSetMemPool(device, pool); });
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
