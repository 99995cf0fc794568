// The side of memory_map that other sessions and other devices see.
#include "backend/cuda/memory/memory_map.hh"

namespace outboard::backend {

std::optional<shareable_piece> memory_map::shareable(std::uint64_t address, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  if (!by_descriptor_ || size == 0) return std::nullopt;
  auto at = mappings_.upper_bound(address);
  if (at == mappings_.begin()) return std::nullopt;
  const mapping& m = std::prev(at)->second;
  const std::uint64_t offset = address - m.address;
  if (m.imported || m.memory == 0 || offset >= m.size || size > m.size - offset) return std::nullopt;
  return shareable_piece{m.memory, m.size, offset, m.device, m.context, m.piece};
}

std::shared_ptr<const marshal::share_token> memory_map::offer_of(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(address);
  return found == offers_.end() ? nullptr : found->second.token;
}

void memory_map::keep_offer(std::uint64_t address, std::uint64_t context,
                            std::shared_ptr<const marshal::share_token> offer) {
  const std::lock_guard lock(mutex_);
  offers_[address] = {context, std::move(offer)};
}

void memory_map::forget_offer(std::uint64_t address) {
  held_offer gone;  // withdrawn without the lock: the daemon is asked
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(address);
  if (found == offers_.end()) return;
  gone = std::move(found->second);
  offers_.erase(found);
}

CUresult memory_map::map_imported(mapping wanted, std::int32_t user) {
  const std::lock_guard lock(mutex_);
  if (slot_size_ == 0 || !fits_window(wanted.address, wanted.size, wanted.device)) {
    driver_.cuMemRelease(wanted.memory);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult code = place(wanted);
  if (code != CUDA_SUCCESS) return code;
  if (user != wanted.device) {
    CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, user}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    code = driver_.cuMemSetAccess(wanted.address, wanted.size, &access, 1);
  }
  if (code != CUDA_SUCCESS) return release(wanted), code;
  mappings_[wanted.address] = std::move(wanted);
  return code;
}

CUresult memory_map::adopt(const mapping& m) {
  const std::lock_guard lock(mutex_);
  if (slot_size_ == 0 || !fits_window(m.address, m.size, m.device)) {
    driver_.cuMemRelease(m.memory);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult code = place(m); code != CUDA_SUCCESS) return code;
  mappings_[m.address] = m;
  bytes_ += m.size;
  held_.add(m.device, m.size);
  return CUDA_SUCCESS;
}

bool memory_map::has_offers() const {
  const std::lock_guard lock(mutex_);
  return !offers_.empty();
}

std::vector<CUmemAccessDesc> memory_map::access_to(std::int32_t device) const {
  std::vector<CUmemAccessDesc> all;
  const auto add = [&](std::int32_t user) {
    CUmemAccessDesc one{};
    one.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    one.location.id = user;
    one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    all.push_back(one);
  };
  add(device);
  if (const auto users = peers_.find(device); users != peers_.end()) {
    for (const auto& [user, contexts] : users->second) {
      if (user != device) add(user);
    }
  }
  return all;
}

CUresult memory_map::open_to_peer(std::int32_t to, std::int32_t from, std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::set<std::uint64_t>& contexts = peers_[to][from];
  const bool fresh = contexts.empty();
  contexts.insert(context);
  if (!fresh || from == to) return CUDA_SUCCESS;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = from;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const auto& [address, m] : mappings_) {
    if (m.device != to || m.memory == 0) continue;
    const CUresult code = driver_.cuMemSetAccess(address, m.size, &access, 1);
    if (code != CUDA_SUCCESS) return peers_[to].erase(from), code;
  }
  return CUDA_SUCCESS;
}

void memory_map::close_to_peer(std::int32_t to, std::int32_t from, std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::map<std::int32_t, std::set<std::uint64_t>>& users = peers_[to];
  const auto found = users.find(from);
  if (found == users.end()) return;
  found->second.erase(context);
  if (!found->second.empty()) return;
  users.erase(found);
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = from;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (const auto& [address, m] : mappings_) {
    if (m.device == to && from != to && m.memory != 0) driver_.cuMemSetAccess(address, m.size, &access, 1);
  }
}

void memory_map::pool_imported(const marshal::share_pointer_body& made, std::uint64_t context,
                               std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  pool_block block;
  block.made.address = made.address;
  block.made.pool = made.pool;
  block.context = context;
  block.ticket = ticket;
  block.imported = made.token;
  pooled_.insert_or_assign(made.address, std::move(block));
}

std::optional<pool_block> memory_map::pooled_at(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = pooled_.find(address);
  return found == pooled_.end() ? std::nullopt : std::optional(found->second);
}

bool memory_map::keep_pool_offer(std::uint64_t address, std::shared_ptr<const marshal::share_token> offer) {
  const std::lock_guard lock(mutex_);
  const auto found = pooled_.find(address);
  if (found == pooled_.end()) return false;
  found->second.offer = std::move(offer);
  return true;
}

}  // namespace outboard::backend
