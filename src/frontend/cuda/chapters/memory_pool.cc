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

std::uint64_t current_pool(std::int32_t device) {
  context_state* primary = process::instance().objects().primary(device);
  const std::uint64_t set = primary->current_pool.load();
  // A pool that was set and then destroyed gives way to the default one.
  return set && find_object<pool_info>(reinterpret_cast<CUmemoryPool>(set)) ? set
                                                                            : primary->default_pool.load();
}

/// The stream under which a freed block may be kept for the next allocation; nothing: frees there are sent. A
/// capture makes nodes of both, and the default stream of a thread is another one in each thread.
std::optional<std::uint64_t> keeping_stream(CUstream stream, bool per_thread) {
  if (any_capture_open() || process::instance().synchronous()) return std::nullopt;
  if (!default_stream(stream)) return value_of(stream);
  if (per_thread || stream == CU_STREAM_PER_THREAD) return std::nullopt;
  return 0;
}

/// Another process sees what is allocated of a pool that is shared.
bool alone_in(std::uint64_t pool) {
  if (pool == 0) return true;  // the default one, which nobody has named yet
  const auto* info = find_object<pool_info>(reinterpret_cast<CUmemoryPool>(pool));
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
  if (!stream_ok(wanted.stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (wanted.size == 0) return *address = 0, CUDA_SUCCESS;
  memory_block block;
  block.size = wanted.size;
  block.kind = memory_kind::pool;
  block.context = own.context_handle();
  const auto* named = find_object<pool_info>(reinterpret_cast<CUmemoryPool>(wanted.pool));
  block.device = named ? named->device : own.current()->device;
  block.pool = wanted.pool ? wanted.pool : current_pool(block.device);
  process& p = process::instance();
  if (const auto stream = keeping_stream(wanted.stream, wanted.per_thread)) {
    if (const auto again = p.memory().freed().take({block, *stream, 0})) {
      p.memory().addresses().insert(*again);
      return *address = again->base, CUDA_SUCCESS;
    }
  }
  request_of<api::opcode::cuMemAllocAsync> r(
      own, marshal::pool_body{wanted.size, 0, value_of(wanted.stream), wanted.pool, wanted.per_thread});
  r.beside_frees();
  marshal::address_reply made;
  freed_blocks& freed = p.memory().freed();
  if (freed.any()) freed.make_room(*p.server(), own.id);
  CUresult code = r.call(made);
  if (code == CUDA_ERROR_OUT_OF_MEMORY && freed.any()) {
    freed.send(*p.server(), own.id);
    code = r.call(made);
  }
  if (code != CUDA_SUCCESS) return code;
  block.base = made.address;
  const bool captured = stream_captures(own, wanted.stream, wanted.per_thread);
  if (captured) p.memory().use_graph_memory();
  code = captured ? p.memory().insert_graph_memory(block) : p.memory().insert_foreign(block);
  if (code != CUDA_SUCCESS) return code;
  *address = made.address;
  return CUDA_SUCCESS;
}

CUresult allocate_from(lane& own, CUdeviceptr* address, const allocation& wanted) {
  const bool alive = find_object<pool_info>(reinterpret_cast<CUmemoryPool>(wanted.pool)) != nullptr;
  return alive ? allocate(own, address, wanted) : CUDA_ERROR_INVALID_VALUE;
}

CUresult release(lane& own, CUdeviceptr address, CUstream stream, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (address == 0) return CUDA_SUCCESS;
  address_table& addresses = process::instance().memory().addresses();
  const auto block = addresses.find(address);
  const bool ours = block && block->base == address && !is_host(block->kind);
  if (block && (block->kind == memory_kind::managed || block->kind == memory_kind::imported ||
                is_mapped(block->kind) || is_host(block->kind))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ours && block->kind == memory_kind::device) {
    // Not of the capture: it loses nothing by the refusal.
    if (stream_captures(own, stream, per_thread)) return CUDA_ERROR_INVALID_VALUE;
    // cuMemAlloc's memory is none of the driver's pools here: freed once the stream has come to it.
    const CUresult code = per_thread ? remote<api::opcode::cuStreamSynchronize_ptsz>(stream)
                                     : remote<api::opcode::cuStreamSynchronize>(stream);
    return code == CUDA_SUCCESS ? ends::cuMemFree_v2(address) : code;
  }
  request_of<api::opcode::cuMemFreeAsync> r(own,
                                            marshal::pool_body{0, address, value_of(stream), 0, per_thread});
  if (!ours || block->kind != memory_kind::pool || any_capture_open()) return r.call();
  if (!addresses.remove(address)) return r.call();  // another thread freed it first
  const auto kept_under = keeping_stream(stream, per_thread);
  process& p = process::instance();
  if (kept_under && alone_in(block->pool) &&
      p.memory().freed().keep({*block, *kept_under, own.running_context()})) {
    // For whoever waits next it is work like any other: then it is sent, and the pool may let go of it.
    p.work().note(own.id);
    return CUDA_SUCCESS;
  }
  return r.post();
}

std::uint64_t reserve_pool(std::int32_t device, bool exportable = false) {
  auto info = std::make_unique<pool_info>();
  info->device = device;
  info->exportable = exportable;
  return process::instance().objects().handles(api::handle_kind::memory_pool).reserve(std::move(info));
}

void forget_pool(std::uint64_t handle) {
  process::instance().objects().handles(api::handle_kind::memory_pool).release(handle);
}

/// The default pool of a device, made known to the server at its first use.
CUresult default_pool(lane& own, context_state& primary, std::uint64_t& out) {
  if ((out = primary.default_pool.load())) return CUDA_SUCCESS;
  const std::uint64_t handle = reserve_pool(primary.device);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuDeviceGetDefaultMemPool> r(own, marshal::context_body{handle, primary.device, 0});
  r.in_context(0);
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return forget_pool(handle), code;
  std::uint64_t none = 0;
  if (primary.default_pool.compare_exchange_strong(none, handle)) return out = handle, CUDA_SUCCESS;
  forget_pool(handle);  // another thread was first
  return out = none, CUDA_SUCCESS;
}

/// Gate, null check, device; `give` chooses the pool.
template <class Give>
CUresult with_device(const void* out, CUdevice device, Give&& give,
                     CUresult no_such = CUDA_ERROR_INVALID_VALUE) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  context_state* primary = p.objects().primary(device);
  return primary ? give(own, *primary) : no_such;
}

/// What the location form of a question means: only pinned memory of devices has pools here (attributes 132
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

CUresult check_attribute(CUmemoryPool pool, CUmemPool_attribute which, const void* value) {
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  const bool known =
      which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  return known && value && find_object<pool_info>(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

namespace ends {

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocAsync>(own);
  return code == CUDA_SUCCESS ? allocate(own, address, {size, 0, stream, false}) : code;
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocAsync_ptsz>(own);
  return code == CUDA_SUCCESS ? allocate(own, address, {size, 0, stream, true}) : code;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t size, CUmemoryPool pool, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocFromPoolAsync>(own);
  return code == CUDA_SUCCESS ? allocate_from(own, address, {size, value_of(pool), stream, false}) : code;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, std::size_t size, CUmemoryPool pool,
                                      CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocFromPoolAsync_ptsz>(own);
  return code == CUDA_SUCCESS ? allocate_from(own, address, {size, value_of(pool), stream, true}) : code;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemFreeAsync>(own);
  return code == CUDA_SUCCESS ? release(own, address, stream, false) : code;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemFreeAsync_ptsz>(own);
  return code == CUDA_SUCCESS ? release(own, address, stream, true) : code;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wanted) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!pool || !wanted) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->location.type == CU_MEM_LOCATION_TYPE_INVALID) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
      !process::instance().objects().primary(wanted->location.id)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool exportable = wanted->handleTypes != 0;
  const std::uint64_t handle = reserve_pool(wanted->location.id, exportable);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  marshal::pool_create_body body;
  body.handle = handle;
  body.max_size = wanted->maxSize;
  body.type = wanted->allocType;
  body.handle_types = wanted->handleTypes;
  body.location_type = wanted->location.type;
  body.location = wanted->location.id;
  body.usage = wanted->usage;
  request_of<api::opcode::cuMemPoolCreate> r(own, body);
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return forget_pool(handle), code;
  *pool = reinterpret_cast<CUmemoryPool>(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (const CUresult code = check_attribute(pool, which, value); code != CUDA_SUCCESS) return code;
  if (is_peak(which)) process::instance().memory().freed().be_exact();
  marshal::pool_attribute_body body{value_of(pool), which, 0};
  std::memcpy(&body.value, value, holds_int(which) ? sizeof(int) : sizeof(cuuint64_t));
  request_of<api::opcode::cuMemPoolSetAttribute> r(this_lane(), body);
  return r.call();
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (const CUresult code = check_attribute(pool, which, value); code != CUDA_SUCCESS) return code;
  if (is_peak(which)) process::instance().memory().freed().be_exact();
  request_of<api::opcode::cuMemPoolGetAttribute> r(this_lane(),
                                                   marshal::pool_attribute_body{value_of(pool), which, 0});
  marshal::number_reply got;
  if (const CUresult code = r.call(got); code != CUDA_SUCCESS) return code;
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
  return with_device(out, device, [&](lane&, context_state& primary) -> CUresult {
    const std::uint64_t set = primary.current_pool.load();
    if (!set || !find_object<pool_info>(reinterpret_cast<CUmemoryPool>(set))) {
      return ends::cuDeviceGetDefaultMemPool(out, device);
    }
    return *out = reinterpret_cast<CUmemoryPool>(set), CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return with_device(pool, device, [&](lane& own, context_state& primary) -> CUresult {
    const pool_info* info = find_object<pool_info>(pool);
    if (!info || info->device != device) return CUDA_ERROR_INVALID_VALUE;
    request_of<api::opcode::cuDeviceSetMemPool> r(own, marshal::context_body{value_of(pool), device, 0});
    r.in_context(0);
    const CUresult code = r.call();
    if (code == CUDA_SUCCESS) primary.current_pool.store(value_of(pool));
    return code;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* where, CUmemAllocationType type) {
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  if (code != CUDA_SUCCESS) return code;
  return process::instance().objects().primary(device) ? ends::cuDeviceGetDefaultMemPool(out, device)
                                                       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* where, CUmemAllocationType type) {
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  return code == CUDA_SUCCESS ? ends::cuDeviceGetMemPool(out, device) : code;
}

CUresult cuMemSetMemPool(CUmemLocation* where, CUmemAllocationType type, CUmemoryPool pool) {
  CUdevice device = 0;
  const CUresult code = device_of(where, type, device);
  return code == CUDA_SUCCESS ? ends::cuDeviceSetMemPool(device, pool) : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
