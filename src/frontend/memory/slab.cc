#include "frontend/memory/slab.hh"

namespace outboard::frontend {

std::uint64_t slab_allocator::take(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  size = rounded(size);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    if (hole->second < size) continue;
    const auto [base, available] = *hole;
    free_.erase(hole);
    if (available > size) free_[base + size] = available - size;
    used_[std::prev(granules_.upper_bound(base))->first] += size;
    return base;
  }
  return 0;
}

void slab_allocator::add_granule(std::uint64_t base, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  granules_[base] = size;
  used_[base] = 0;
  free_[base] = size;
}

std::uint64_t slab_allocator::give_back(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  size = rounded(size);
  const auto granule = std::prev(granules_.upper_bound(address));
  std::uint64_t& used = used_[granule->first];
  used -= size;
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + size == next->first &&
      next->first != granule->first + granule->second) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first >= granule->first && before->first + before->second == address) {
      address = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  free_[address] = size;
  if (used != 0 || granules_.size() == 1)
    return 0;  // the last granule stays: malloc/free pairs must not thrash
  const std::uint64_t base = granule->first;
  free_.erase(base);
  used_.erase(base);
  granules_.erase(granule);
  return base;
}

std::vector<std::uint64_t> slab_allocator::clear() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> bases;
  for (const auto& [base, size] : granules_) bases.push_back(base);
  free_.clear(), granules_.clear(), used_.clear();
  return bases;
}

}  // namespace outboard::frontend
