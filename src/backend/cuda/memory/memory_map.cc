#include "backend/cuda/memory/memory_map.hh"

#include <algorithm>

#include "base/log.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t granule = 2ull << 20;

CUmemAllocationProp property_of(std::int32_t device, bool by_descriptor) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  if (by_descriptor) prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

bool has_virtual_memory(const api::driver_table& d, const marshal::snapshot& facts) {
  if (!d.cuMemAddressReserve || !d.cuMemCreate || !d.cuMemMap || !d.cuMemSetAccess || !d.cuMemUnmap ||
      !d.cuMemRelease) {
    return false;
  }
  for (const auto& device : facts.devices) {
    constexpr auto id = static_cast<std::size_t>(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    if (device.attributes.size() <= id || device.attributes[id].value == 0) return false;
  }
  return true;
}

/// Every block of the window may be shared later, so all are made for it where all devices can.
bool shares_by_descriptor(const marshal::snapshot& facts) {
  constexpr auto id =
      static_cast<std::size_t>(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  return std::all_of(facts.devices.begin(), facts.devices.end(), [](const marshal::device_facts& device) {
    return device.attributes.size() > id && device.attributes[id].result == CUDA_SUCCESS &&
           device.attributes[id].value != 0;
  });
}

}  // namespace

bool memory_map::reserve_window(std::uint64_t base, std::uint64_t slot_size, const marshal::snapshot& facts) {
  if (slot_size == 0 || base == 0 || slot_size % granule || base % granule ||
      !has_virtual_memory(driver_, facts)) {
    return false;
  }
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    const std::uint64_t wanted = base + i * slot_size;
    CUdeviceptr got = 0;
    const CUresult code = driver_.cuMemAddressReserve(&got, slot_size, 0, wanted, 0);
    if (code == CUDA_SUCCESS && got == wanted) continue;
    log::warn("the device does not give the address window at ", wanted, " (code ", static_cast<int>(code),
              "): addresses will be the device's own");
    if (code == CUDA_SUCCESS && driver_.cuMemAddressFree) driver_.cuMemAddressFree(got, slot_size);
    for (std::size_t j = 0; j < i && driver_.cuMemAddressFree; ++j) {
      driver_.cuMemAddressFree(base + j * slot_size, slot_size);
    }
    return false;
  }
  base_ = base;
  slot_size_ = slot_size;
  slots_ = facts.devices.size();
  by_descriptor_ = shares_by_descriptor(facts);
  return true;
}

bool memory_map::fits_window(std::uint64_t address, std::uint64_t size, std::int32_t device) const {
  const std::uint64_t slot = base_ + static_cast<std::uint64_t>(device) * slot_size_;
  if (size == 0 || size > slot_size_ || address % granule || size % granule) return false;
  if (address < slot || address - slot > slot_size_ - size) return false;
  const auto after = mappings_.lower_bound(address);
  if (after != mappings_.end() && after->first < address + size) return false;
  if (after == mappings_.begin()) return true;
  const mapping& before = std::prev(after)->second;
  return before.address + before.size <= address;
}

bool memory_map::vacant_in_window(std::uint64_t address, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  if (slot_size_ == 0 || address < base_) return false;
  const std::uint64_t slot = (address - base_) / slot_size_;
  return slot < slots_ && fits_window(address, size, static_cast<std::int32_t>(slot));
}

CUresult memory_map::map_window(const mapping& wanted, CUmemGenericAllocationHandle& memory) {
  const CUmemAllocationProp prop = property_of(wanted.device, by_descriptor_);
  const CUresult code = driver_.cuMemCreate(&memory, wanted.size, &prop, 0);
  if (code != CUDA_SUCCESS) return code;
  mapping placed = wanted;
  placed.memory = memory;
  return place(placed);
}

/// Releases the memory when it cannot be mapped.
CUresult memory_map::place(const mapping& m) {
  CUresult code = driver_.cuMemMap(m.address, m.size, 0, m.memory, 0);
  if (code != CUDA_SUCCESS) {
    driver_.cuMemRelease(m.memory);
    return code;
  }
  const std::vector<CUmemAccessDesc> access = access_to(m.device);
  code = driver_.cuMemSetAccess(m.address, m.size, access.data(), access.size());
  if (code == CUDA_SUCCESS) return code;
  driver_.cuMemUnmap(m.address, m.size);
  driver_.cuMemRelease(m.memory);
  return code;
}

CUresult memory_map::map(std::uint64_t& address, std::uint64_t size, std::int32_t device,
                         std::uint64_t context, std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  mapping made{address, size, 0, device, context, ticket};
  CUresult code = CUDA_SUCCESS;
  if (slot_size_ == 0 || address == 0) {
    CUdeviceptr chosen = 0;
    code = driver_.cuMemAlloc_v2(&chosen, size);
    made.address = chosen;
  } else {
    if (!fits_window(address, size, device)) return CUDA_ERROR_INVALID_VALUE;
    code = map_window(made, made.memory);
  }
  if (code != CUDA_SUCCESS) return code;
  address = made.address;
  mappings_[made.address] = made;
  bytes_ += size;
  held_.add(device, size);
  return CUDA_SUCCESS;
}

void memory_map::release(const mapping& m) {
  if (m.memory == 0) {
    driver_.cuMemFree_v2(m.address);
    return;
  }
  driver_.cuMemUnmap(m.address, m.size);
  driver_.cuMemRelease(m.memory);
}

void memory_map::uncount(const mapping& gone) {
  if (gone.imported) return;
  bytes_ -= gone.size;
  held_.take(gone.device, gone.size);
}

CUresult memory_map::unmap(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(address);
  if (found == mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
  release(found->second);
  uncount(found->second);
  mappings_.erase(found);
  return CUDA_SUCCESS;
}

void memory_map::drop_context(std::uint64_t context, bool unmap_too) {
  const std::lock_guard lock(mutex_);
  for (auto at = mappings_.begin(); at != mappings_.end();) {
    if (at->second.context != context) {
      ++at;
      continue;
    }
    if (unmap_too || at->second.memory != 0) release(at->second);
    uncount(at->second);
    at = mappings_.erase(at);
  }
  std::erase_if(offers_, [&](const auto& entry) { return entry.second.context == context; });
  for (auto& [to, users] : peers_) {
    for (auto& [from, contexts] : users) contexts.erase(context);
    std::erase_if(users, [](const auto& entry) { return entry.second.empty(); });
  }
  std::erase_if(arrays_, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    uncount(entry.second);
    return true;
  });
}

void memory_map::array_made(std::uint64_t id, std::uint64_t size, std::int32_t device,
                            std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (!arrays_.emplace(id, array{size, context, device}).second) return;
  array_bytes_ += size;
  held_.add(device, size);
}

void memory_map::uncount(const array& gone) {
  array_bytes_ -= gone.size;
  held_.take(gone.device, gone.size);
}

void memory_map::array_gone(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) return;
  uncount(found->second);
  arrays_.erase(found);
}

void memory_map::pool_allocated(const marshal::pool_body& made, std::int32_t device, std::uint64_t context,
                                std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  pool_devices_.insert(device);
  pool_block block{made, context, ticket};
  block.made.stream = 0;  // the order of streams is over when records are replayed
  block.made.per_thread = false;
  block.device = device;
  if (!pooled_.emplace(made.address, block).second) return;
  pool_bytes_ += made.size;
  held_.add_pooled(device, made.size);
}

std::optional<std::int32_t> memory_map::pool_freed(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = pooled_.find(address);
  if (found == pooled_.end()) return std::nullopt;
  const pool_block gone = std::move(found->second);
  pooled_.erase(found);
  if (gone.imported) return gone.device;
  pool_bytes_ -= gone.made.size;
  held_.take_pooled(gone.device, gone.made.size);
  return gone.device;
}

std::uint64_t memory_map::pool_bytes() const {
  const std::lock_guard lock(mutex_);
  return pool_bytes_;
}

std::uint64_t memory_map::array_bytes() const {
  const std::lock_guard lock(mutex_);
  return array_bytes_;
}

std::uint64_t memory_map::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::vector<std::int32_t> memory_map::pool_devices() const {
  const std::lock_guard lock(mutex_);
  return {pool_devices_.begin(), pool_devices_.end()};
}

std::vector<pool_block> memory_map::all_pooled() const {
  const std::lock_guard lock(mutex_);
  std::vector<pool_block> out;
  for (const auto& [address, block] : pooled_) out.push_back(block);
  return out;
}

std::vector<mapping> memory_map::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<mapping> out;
  for (const auto& [address, m] : mappings_) out.push_back(m);
  return out;
}

}  // namespace outboard::backend
