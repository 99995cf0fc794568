// Handlers of the chapter memory pool. Pools are objects like others; what they hand out is in the ledger.
#include "backend/cuda/memory/memory_pools.hh"

#include <set>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/with_room.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

CUresult allocate(call& c, const marshal::pool_body& body, CUstream stream, CUdeviceptr& out) {
  const api::driver_table& d = c.driver();
  if (body.pool == 0) {
    return call_driver(body.per_thread ? d.cuMemAllocAsync_ptsz : d.cuMemAllocAsync, &out, body.size, stream);
  }
  CUmemoryPool pool = nullptr;
  if (const CUresult code = c.objects().resolve(body.pool, pool); code != CUDA_SUCCESS) return code;
  return call_driver(body.per_thread ? d.cuMemAllocFromPoolAsync_ptsz : d.cuMemAllocFromPoolAsync, &out,
                     body.size, pool, stream);
}

/// Whose memory the pool gives out; -1: no device's.
std::int32_t device_of(call& c, const marshal::pool_body& body) {
  if (const auto found = c.session.limits().device_of(body.pool)) return *found;
  CUdevice current = -1;
  call_driver(c.driver().cuCtxGetDevice, &current);
  return current;
}

/// Managed memory that the mirrors have allocated is theirs to free. What a pool takes back loses its mirrors
/// before: nobody says when a free in stream order is carried out.
CUresult release(call& c, CUdeviceptr address, CUstream stream, bool per_thread) {
  if (c.session.mirrors().allocated(address)) return CUDA_ERROR_INVALID_VALUE;
  drop_variables_of_pool(c, address);
  return call_driver(per_thread ? c.driver().cuMemFreeAsync_ptsz : c.driver().cuMemFreeAsync, address,
                     stream);
}

bool holds_int(std::int32_t which) {
  return which == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         which == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         which == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/// A number that drivers fill with eight bytes at most, whatever newer attributes they know.
bool is_number(std::int32_t which) {
  return which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

/// Bytes that this pool has taken from the device; false: the driver does not tell.
bool held_by(const api::driver_table& d, CUmemoryPool pool, std::uint64_t& out) {
  cuuint64_t held = 0;
  if (call_driver(d.cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held) != CUDA_SUCCESS)
    return false;
  return out += held, true;
}

}  // namespace

void drop_variables_of_pool(call& c, std::uint64_t address) {
  if (!c.session.mirrors().has_variables()) return;
  const auto block = c.session.memory().pooled_at(address);
  if (!block) return;
  const marshal::address_range going[] = {{address, address + block->made.size}};
  c.session.mirrors().drop_within(going);
}

std::uint64_t bytes_of_pools(call& c) {
  std::set<CUmemoryPool> pools;
  for (const std::uint64_t id : c.objects().ids(api::handle_kind::memory_pool)) {
    CUmemoryPool pool = nullptr;
    if (c.objects().resolve(id, pool) == CUDA_SUCCESS) pools.insert(pool);
  }
  for (const std::int32_t device : c.session.memory().pool_devices()) {
    CUmemoryPool pool = nullptr;
    if (call_driver(c.driver().cuDeviceGetDefaultMemPool, &pool, device) == CUDA_SUCCESS) pools.insert(pool);
  }
  std::uint64_t held = 0;
  for (CUmemoryPool pool : pools) {
    if (!held_by(c.driver(), pool, held)) return c.session.memory().pool_bytes();
  }
  return held;
}

namespace ends {

outcome cuMemAllocAsync(call& c, const marshal::pool_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUstream stream = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, stream); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  CUdeviceptr address = 0;
  const std::int32_t device = device_of(c, body);
  CUresult code = with_room(c, device, body.size, &quota::admit_pooled,
                            [&] { return allocate(c, body, stream, address); });
  if (code == CUDA_SUCCESS && body.address != 0 && body.address != address) {
    // A record of another worker's: pointers to it lie in the program's memory.
    release(c, address, stream, body.per_thread);
    code = CUDA_ERROR_MAP_FAILED;
  }
  if (code == CUDA_SUCCESS) {
    marshal::pool_body made = body;
    made.address = address;
    c.session.memory().pool_allocated(made, device, c.header.context, c.header.ticket);
    if (device >= 0) c.session.limits().pools_changed(device);
  }
  marshal::put_body(c.reply, marshal::address_reply{address});
  return outcome::answer(code);
}

outcome cuMemFreeAsync(call& c, const marshal::pool_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUstream stream = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, stream); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  const CUresult code = release(c, body.address, stream, body.per_thread);
  if (code == CUDA_SUCCESS) {
    const auto device = c.session.memory().pool_freed(body.address);
    if (device && *device >= 0) c.session.limits().pools_changed(*device);
  }
  return outcome::answer(code);
}

outcome cuMemPoolCreate(call& c, const marshal::pool_create_body& body) {
  CUmemPoolProps properties{};
  properties.allocType = static_cast<CUmemAllocationType>(body.type);
  properties.handleTypes = static_cast<CUmemAllocationHandleType>(body.handle_types);
  properties.location.type = static_cast<CUmemLocationType>(body.location_type);
  properties.location.id = body.location;
  properties.maxSize = body.max_size;
  properties.usage = body.usage;
  CUmemoryPool made = nullptr;
  const CUresult code = call_driver(c.driver().cuMemPoolCreate, &made, &properties);
  if (code == CUDA_SUCCESS) {
    const bool on_device = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    c.session.limits().pool_made(body.handle, on_device ? properties.location.id : -1);
  }
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, made, c.as_record())
                                         : c.objects().fail(body.handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

outcome cuDeviceGetDefaultMemPool(call& c, const marshal::context_body& body) {
  CUmemoryPool pool = nullptr;
  const CUresult code = call_driver(c.driver().cuDeviceGetDefaultMemPool, &pool, body.device);
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, pool, c.as_record())
                                         : c.objects().fail(body.handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

outcome cuDeviceSetMemPool(call& c, const marshal::context_body& body) {
  CUmemoryPool pool = nullptr;
  CUresult code = c.objects().resolve(body.handle, pool);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuDeviceSetMemPool, body.device, pool);
  if (code == CUDA_SUCCESS) c.objects().amend(body.handle, c.as_record());
  return outcome::answer(code);
}

outcome cuMemPoolSetAttribute(call& c, const marshal::pool_attribute_body& body) {
  CUmemoryPool pool = nullptr;
  std::uint64_t value = body.value;
  CUresult code = c.objects().resolve(body.pool, pool);
  if (code == CUDA_SUCCESS && !is_number(body.attribute)) code = CUDA_ERROR_INVALID_VALUE;
  if (code == CUDA_SUCCESS) {
    code = call_driver(c.driver().cuMemPoolSetAttribute, pool,
                       static_cast<CUmemPool_attribute>(body.attribute), &value);
  }
  const bool state = holds_int(body.attribute) || body.attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
  if (code == CUDA_SUCCESS && state) c.objects().amend(body.pool, c.as_record(), sizeof body.value);
  return outcome::answer(code);
}

outcome cuMemPoolGetAttribute(call& c, const marshal::pool_attribute_body& body) {
  CUmemoryPool pool = nullptr;
  CUresult code = c.objects().resolve(body.pool, pool);
  if (code == CUDA_SUCCESS && !is_number(body.attribute)) code = CUDA_ERROR_INVALID_VALUE;
  std::uint64_t value = 0;  // an int fills the low half
  if (code == CUDA_SUCCESS) {
    code = call_driver(c.driver().cuMemPoolGetAttribute, pool,
                       static_cast<CUmemPool_attribute>(body.attribute), &value);
  }
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(value)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
