#include "backend/cuda/memory/quota.hh"

#include <algorithm>

#include "backend/cuda/driver_call.hh"

namespace outboard::backend {

std::optional<std::int32_t> quota::device_of(std::uint64_t pool) const {
  const auto found = pools_.find(pool);
  return found != pools_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<CUmemoryPool> quota::pools_of(std::int32_t device) const {
  std::vector<CUmemoryPool> list;
  CUmemoryPool own = nullptr;
  if (device != this_machine && call_driver(driver_.cuDeviceGetDefaultMemPool, &own, device) == CUDA_SUCCESS)
    list.push_back(own);
  for (const std::uint64_t id : objects_.ids(api::handle_kind::memory_pool)) {
    CUmemoryPool pool = nullptr;
    if (device_of(id) == device && objects_.resolve(id, pool) == CUDA_SUCCESS) list.push_back(pool);
  }
  return list;
}

void quota::count_kept(std::int32_t device) {
  std::uint64_t reserved = 0;
  for (CUmemoryPool pool : pools_of(device)) {
    cuuint64_t bytes = 0;
    if (call_driver(driver_.cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) ==
        CUDA_SUCCESS)
      reserved += bytes;
  }
  const std::uint64_t pooled = held_.pooled(device);
  std::uint64_t kept = reserved > pooled ? reserved - pooled : 0;
  cuuint64_t graphs = 0;
  if (device != this_machine && call_driver(driver_.cuDeviceGetGraphMemAttribute, device,
                                            CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &graphs) == CUDA_SUCCESS)
    kept += graphs;
  std::uint64_t& counted = kept_[device];
  held_.add(device, kept - counted);  // modulo 2^64: also when it is less
  counted = kept;
}

void quota::give_back(std::int32_t device) {
  for (CUmemoryPool pool : pools_of(device)) call_driver(driver_.cuMemPoolTrimTo, pool, std::size_t{0});
  if (device != this_machine) call_driver(driver_.cuDeviceGraphMemTrim, device);
  count_kept(device);
}

CUresult quota::admit(std::int32_t device, std::uint64_t bytes, reservation& room) {
  const std::uint64_t most = most_of(device);
  if (!held_.is_limited(device, most) || held_.reserve(device, bytes, most, room)) return CUDA_SUCCESS;
  give_back(device);
  return held_.reserve(device, bytes, most, room) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult quota::admit_pooled(std::int32_t device, std::uint64_t bytes, reservation& room) {
  if (!is_set(device)) return CUDA_SUCCESS;
  count_kept(device);
  const std::uint64_t most = most_of(device), kept = kept_[device], used = held_.bytes(device) - kept;
  if (most != 0 && (bytes > most || used > most - bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes <= kept) return CUDA_SUCCESS;
  return held_.reserve(device, bytes - kept, 0, room) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void quota::pools_changed(std::int32_t device) {
  if (!is_set(device)) return;
  count_kept(device);
  if (!held_.fits(device, 0, most_of(device))) give_back(device);
}

CUresult quota::admit_graph() {
  CUresult code = CUDA_SUCCESS;
  for (const std::int32_t device : graph_devices_) {
    reservation none;
    if (code == CUDA_SUCCESS) code = admit(device, 0, none);
  }
  return code;
}

void quota::graph_launched() {
  for (const std::int32_t device : graph_devices_) {
    if (is_set(device)) count_kept(device);
  }
}

std::uint64_t quota::free_of(std::int32_t device, std::uint64_t free) {
  if (!is_set(device)) return free;
  count_kept(device);
  return std::min(free, held_.left(device, most_of(device)));
}

}  // namespace outboard::backend
