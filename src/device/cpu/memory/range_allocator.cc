#include "device/cpu/memory/range_allocator.hh"

namespace outboard::device::cpu {

void range_allocator::insert(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return;
  ranges_[begin] = size;
  by_size_.emplace(size, begin);
  free_bytes_ += size;
}

void range_allocator::erase(by_begin::iterator at) {
  by_size_.erase({at->second, at->first});
  free_bytes_ -= at->second;
  ranges_.erase(at);
}

void range_allocator::add(std::uint64_t begin, std::uint64_t size) {
  auto next = ranges_.lower_bound(begin);
  if (next != ranges_.end() && next->first == begin + size) {
    size += next->second;
    auto gone = next++;
    erase(gone);
  }
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      erase(before);
    }
  }
  insert(begin, size);
}

std::optional<std::uint64_t> range_allocator::take(std::uint64_t size, std::uint64_t alignment) {
  for (auto at = by_size_.lower_bound({size, 0}); at != by_size_.end(); ++at) {
    const auto [length, begin] = *at;
    const std::uint64_t start = (begin + alignment - 1) & ~(alignment - 1);
    if (start - begin > length - size) continue;
    take_at(start, size);
    return start;
  }
  return std::nullopt;
}

bool range_allocator::take_at(std::uint64_t begin, std::uint64_t size) {
  auto at = ranges_.upper_bound(begin);
  if (at == ranges_.begin()) return false;
  --at;
  const auto [first, length] = *at;
  if (begin - first > length || size > length - (begin - first)) return false;
  erase(at);
  insert(first, begin - first);
  insert(begin + size, first + length - (begin + size));
  return true;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> range_allocator::free_around(std::uint64_t at) const {
  auto range = ranges_.upper_bound(at);
  if (range == ranges_.begin()) return std::nullopt;
  --range;
  if (at - range->first >= range->second) return std::nullopt;
  return *range;
}

}  // namespace outboard::device::cpu
