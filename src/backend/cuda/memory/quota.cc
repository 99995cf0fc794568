#include "backend/cuda/memory/quota.hh"

#include <algorithm>

#include "backend/cuda/driver_call.hh"

namespace outboard::backend {

bool quota::fits(std::int32_t device, std::uint64_t bytes) const { return held_.fits(device, bytes, most_); }

std::optional<std::int32_t> quota::device_of(std::uint64_t pool) const {
  const auto found = pools_.find(pool);
  return found != pools_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<CUmemoryPool> quota::pools_of(std::int32_t device) const {
  std::vector<CUmemoryPool> list;
  CUmemoryPool own = nullptr;
  if (call_driver(driver_.cuDeviceGetDefaultMemPool, &own, device) == CUDA_SUCCESS) list.push_back(own);
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
  if (call_driver(driver_.cuDeviceGetGraphMemAttribute, device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                  &graphs) == CUDA_SUCCESS)
    kept += graphs;
  std::uint64_t& counted = kept_[device];
  held_.add(device, kept - counted);  // modulo 2^64: also when it is less
  counted = kept;
}

void quota::give_back(std::int32_t device) {
  for (CUmemoryPool pool : pools_of(device)) call_driver(driver_.cuMemPoolTrimTo, pool, std::size_t{0});
  call_driver(driver_.cuDeviceGraphMemTrim, device);
  count_kept(device);
}

CUresult quota::admit(std::int32_t device, std::uint64_t bytes) {
  if (!is_set() || (fits(device, bytes) && claims(device, bytes))) return CUDA_SUCCESS;
  give_back(device);
  return fits(device, bytes) && claims(device, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult quota::admit_pooled(std::int32_t device, std::uint64_t bytes) {
  if (!is_set()) return CUDA_SUCCESS;
  count_kept(device);
  const std::uint64_t held = held_.bytes(device) - kept_[device];
  if (bytes > most_ || held > most_ - bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  return !account_ || account_->claim(device, bytes, kept_[device]) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void quota::pools_changed(std::int32_t device) {
  if (!is_set()) return;
  count_kept(device);
  if (!fits(device, 0) || (account_ && !account_->left(device))) give_back(device);
}

CUresult quota::admit_graph() {
  CUresult code = CUDA_SUCCESS;
  for (const std::int32_t device : graph_devices_) {
    if (code == CUDA_SUCCESS) code = admit(device, 0);
  }
  return code;
}

void quota::graph_launched() {
  if (!is_set()) return;
  for (const std::int32_t device : graph_devices_) count_kept(device);
}

std::uint64_t quota::free_of(std::int32_t device, std::uint64_t free) {
  if (!is_set()) return free;
  count_kept(device);
  const std::uint64_t held = held_.bytes(device);
  if (account_) free = std::min(free, account_->left(device).value_or(0));
  return std::min(free, held < most_ ? most_ - held : 0);
}

}  // namespace outboard::backend
