#include "device/cpu/memory/kernel_heap.hh"

namespace outboard::device::cpu {

std::uint64_t kernel_heap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > ~std::uint64_t{0} - alignment) return 0;
  const std::uint64_t size = (bytes + alignment - 1) / alignment * alignment;
  const std::lock_guard lock(mutex_);
  const auto found = free_.take(size, alignment);
  if (!found) return 0;
  taken_.emplace(*found, size);
  return *found;
}

bool kernel_heap::release(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = taken_.find(address);
  if (block == taken_.end()) return false;
  free_.add(block->first, block->second);
  taken_.erase(block);
  return true;
}

}  // namespace outboard::device::cpu
