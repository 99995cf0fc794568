#include "device/cpu/memory/pool.hh"

#include <cstring>

#include "device/cpu/handle_table.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

template <class T>
CUresult give(void* out, T value) {
  return std::memcpy(out, &value, sizeof value), CUDA_SUCCESS;
}

}  // namespace

pool::~pool() {
  release_all();
  if (mapping_.begin() != 0) store_.await_flights();  // a kernel may know it still
}

CUresult pool::allocate(std::uint64_t size, std::uint64_t owner, std::uint64_t& out) {
  const std::lock_guard lock(mutex_);
  if (imported_) return CUDA_ERROR_INVALID_VALUE;  // as the driver
  if (size > store_.total()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t taken = round_up(size, memory::alignment);
  if (properties_.maxSize != 0 && taken > properties_.maxSize - std::min(properties_.maxSize, used_)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto begin = free_.take(taken, memory::alignment);
  if (!begin) {
    const std::uint64_t chunk = round_up(taken, memory::granularity);
    std::uint64_t address = 0;
    if (const CUresult r = take_chunk(chunk, address); r != CUDA_SUCCESS) return r;
    chunks_[address] = chunk;
    free_.add(address, chunk);
    reserved_ += chunk;
    reserved_high_ = std::max(reserved_high_, reserved_);
    begin = free_.take(taken, memory::alignment);
  }
  store_.place({.begin = *begin, .size = size, .kind = memory_kind::pooled, .owner = owner, .pool = id_});
  blocks_[*begin] = taken;
  used_ += taken;
  used_high_ = std::max(used_high_, used_);
  return out = *begin, CUDA_SUCCESS;
}

void pool::release_locked(std::uint64_t address, std::uint64_t size) {
  used_ -= size;
  free_.add(address, size);
}

bool pool::release(std::uint64_t address, std::uint64_t block_id) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || !displace(address, block_id)) return false;
  release_locked(address, block->second);
  blocks_.erase(block);
  trim_locked(threshold_);
  return true;
}

void pool::trim_locked(std::uint64_t keep) {
  for (auto chunk = chunks_.begin(); chunk != chunks_.end() && reserved_ > keep;) {
    if (!free_.take_at(chunk->first, chunk->second)) {
      ++chunk;
      continue;
    }
    give_back_chunk(chunk->first, chunk->second);
    reserved_ -= chunk->second;
    chunk = chunks_.erase(chunk);
  }
}

void pool::trim(std::uint64_t keep) {
  const std::lock_guard lock(mutex_);
  trim_locked(keep);
}

void pool::release_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, size] : blocks_) {
    displace(address, 0);
    release_locked(address, size);
  }
  blocks_.clear();
  trim_locked(0);
}

bool pool::empty() const {
  const std::lock_guard lock(mutex_);
  return blocks_.empty();
}

CUresult pool::set(CUmemPool_attribute which, const void* value) {
  const std::lock_guard lock(mutex_);
  if (imported_) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t wide = 0;
  switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      std::memcpy(&reuse_[which - 1], value, sizeof reuse_[0]);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&threshold_, value, sizeof threshold_);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      std::memcpy(&wide, value, sizeof wide);
      if (wide != 0) return CUDA_ERROR_INVALID_VALUE;  // a high-water mark can only be reset
      (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_high_ : reserved_high_) =
          which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_ : reserved_;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult pool::get(CUmemPool_attribute which, void* value) const {
  const std::lock_guard lock(mutex_);
  if (imported_) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return give(value, reuse_[which - 1]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return give(value, threshold_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return give(value, reserved_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return give(value, reserved_high_);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return give(value, used_);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return give(value, used_high_);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

pool_set::pool_set(memory& store) : store_(store) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  current_ = standard_ = create(properties);
}

std::uint64_t pool_set::create(const CUmemPoolProps& properties) {
  const bool shared = (properties.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  return insert(
      properties, shared ? [](pool& p, int) { return p.share(); } : [](pool&, int) { return true; }, -1);
}

std::uint64_t pool_set::import(int fd) {
  return insert(
      {}, [](pool& p, int from) { return p.import(from); }, fd);
}

std::uint64_t pool_set::insert(const CUmemPoolProps& properties, bool (*prepare)(pool&, int), int fd) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t handle = std::uint64_t{static_cast<std::uint8_t>(handle_type::pool)} << 56 | ++last_
                                                                                                       << 4;
  auto made = std::make_shared<pool>(store_, handle, properties);
  if (!prepare(*made, fd)) return 0;
  pools_[handle] = {std::move(made), false};
  return handle;
}

bool pool_set::destroy(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  if (found == pools_.end() || found->second.destroyed || handle == standard_) return false;
  if (current_ == handle) current_ = standard_;
  found->second.destroyed = true;
  if (found->second.made->empty()) pools_.erase(found);
  return true;
}

pool_ptr pool_set::find(std::uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  return found == pools_.end() || found->second.destroyed ? nullptr : found->second.made;
}

pool_ptr pool_set::owner_of(const region& block) const {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(block.pool);
  return found == pools_.end() ? nullptr : found->second.made;
}

void pool_set::settle(const region& block) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(block.pool);
  if (found != pools_.end() && found->second.destroyed && found->second.made->empty()) pools_.erase(found);
}

void pool_set::trim_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, e] : pools_) e.made->trim(0);
}

void pool_set::release_all() {
  const std::lock_guard lock(mutex_);
  for (auto at = pools_.begin(); at != pools_.end();) {
    at->second.made->release_all();
    at = at->second.destroyed ? pools_.erase(at) : std::next(at);
  }
}

std::uint64_t pool_set::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

CUresult pool_set::make_current(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  if (found == pools_.end() || found->second.destroyed) return CUDA_ERROR_INVALID_VALUE;
  return current_ = handle, CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
