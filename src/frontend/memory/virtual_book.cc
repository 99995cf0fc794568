#include "frontend/memory/virtual_book.hh"

namespace outboard::frontend {

void virtual_book::reserve(const reservation& made) {
  const std::lock_guard lock(mutex_);
  ranges_[made.base] = made;
}

bool virtual_book::vacant(std::uint64_t base, std::uint64_t size) const {
  const auto next = placed_.lower_bound(base);
  if (next != placed_.end() && next->first - base < size) return false;
  if (next == placed_.begin()) return true;
  const placement& before = std::prev(next)->second;
  return base - before.base >= before.size;
}

std::optional<reservation> virtual_book::free(std::uint64_t base, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(base);
  if (found == ranges_.end() || found->second.size != size || !vacant(base, size)) return std::nullopt;
  const reservation gone = found->second;
  ranges_.erase(found);
  return gone;
}

bool virtual_book::place(const placement& wanted) {
  const std::lock_guard lock(mutex_);
  auto range = ranges_.upper_bound(wanted.base);
  if (range == ranges_.begin()) return false;
  --range;
  const reservation& r = range->second;
  if (wanted.size > r.size || wanted.base - r.base > r.size - wanted.size) return false;
  if (!vacant(wanted.base, wanted.size)) return false;
  placed_[wanted.base] = wanted;
  if (wanted.host) has_host_.store(true, std::memory_order_relaxed);
  return true;
}

void virtual_book::withdraw(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  placed_.erase(base);
}

bool virtual_book::tiled(std::uint64_t base, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  if (size == 0) return false;
  auto next = placed_.find(base);
  for (std::uint64_t done = 0; done < size; ++next) {
    if (next == placed_.end() || next->first - base != done || next->second.size > size - done) return false;
    done += next->second.size;
  }
  return true;
}

std::optional<std::vector<placement>> virtual_book::displace(std::uint64_t base, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.upper_bound(base);
  if (size == 0 || after == ranges_.begin()) return std::nullopt;
  reservation& r = std::prev(after)->second;
  if (base - r.base >= r.size || (!r.used && vacant(r.base, r.size))) return std::nullopt;
  auto first = placed_.lower_bound(base);
  if (first != placed_.begin()) {
    const placement& before = std::prev(first)->second;
    if (base - before.base < before.size) return std::nullopt;
  }
  std::vector<placement> gone;
  auto last = first;
  for (; last != placed_.end() && last->first - base < size; ++last) {
    if (last->second.size > size - (last->first - base)) return std::nullopt;
    gone.push_back(last->second);
  }
  placed_.erase(first, last);
  r.used = true;
  return gone;
}

std::vector<placement> virtual_book::within(std::uint64_t base, std::uint64_t size) const {
  const std::lock_guard lock(mutex_);
  std::vector<placement> all;
  for (auto at = placed_.lower_bound(base); at != placed_.end() && at->first - base < size; ++at)
    all.push_back(at->second);
  return all;
}

void virtual_book::note_access(std::uint64_t base, std::pair<std::int32_t, std::int32_t> location,
                               std::uint64_t flags) {
  const std::lock_guard lock(mutex_);
  const auto found = placed_.find(base);
  if (found != placed_.end()) found->second.access[location] = flags;
}

std::optional<reservation> virtual_book::range_of(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return std::nullopt;
  const reservation& found = std::prev(after)->second;
  if (address - found.base >= found.size) return std::nullopt;
  return found;
}

std::optional<placement> virtual_book::at(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto after = placed_.upper_bound(address);
  if (after == placed_.begin()) return std::nullopt;
  const placement& found = std::prev(after)->second;
  if (address - found.base >= found.size) return std::nullopt;
  return found;
}

}  // namespace outboard::frontend
