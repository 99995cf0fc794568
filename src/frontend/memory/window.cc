#include "frontend/memory/window.hh"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/pages.hh"
#include "base/sealed_file.hh"

namespace outboard::frontend {

std::optional<claimed_range> claimed_range::claim(std::uint64_t base, std::uint64_t size) {
  void* wanted = reinterpret_cast<void*>(base);
  void* got = ::mmap(wanted, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return std::nullopt;
  if (got != wanted) {  // a kernel older than 4.17 takes the address as a hint
    ::munmap(got, size);
    return std::nullopt;
  }
  claimed_range range;
  range.base_ = base;
  range.size_ = size;
  return range;
}

claimed_range::claimed_range(claimed_range&& other) noexcept
    : base_(std::exchange(other.base_, 0)), size_(std::exchange(other.size_, 0)) {}

claimed_range& claimed_range::operator=(claimed_range&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

claimed_range::~claimed_range() {
  if (size_) ::munmap(reinterpret_cast<void*>(base_), size_);
}

bool foreign_claims::claim(std::uint64_t address, std::uint64_t size) {
  std::uint64_t begin = page_down(address), end = page_up(address + size);
  const std::lock_guard lock(mutex_);
  // Only the gaps between what is claimed already are new.
  auto next = claimed_.upper_bound(begin);
  if (next != claimed_.begin() && std::prev(next)->second >= begin) --next;
  std::uint64_t at = begin;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps;
  for (auto known = next; at < end; ++known) {
    const std::uint64_t until = known == claimed_.end() ? end : std::min(end, known->first);
    if (at < until) gaps.emplace_back(at, until - at);
    if (known == claimed_.end()) break;
    at = std::max(at, known->second);
  }
  std::vector<claimed_range> taken;
  for (const auto& [base, bytes] : gaps) {
    auto range = claimed_range::claim(base, bytes);
    if (!range) return false;
    taken.push_back(std::move(*range));
  }
  for (claimed_range& range : taken) range.keep();
  while (next != claimed_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = claimed_.erase(next);
  }
  claimed_[begin] = end;
  return true;
}

void slot_addresses::cut(std::map<std::uint64_t, std::uint64_t>::iterator hole, std::uint64_t base,
                         std::uint64_t size) {
  const auto [first, available] = *hole;
  free_.erase(hole);
  const std::uint64_t before = base - first, after = available - before - size;
  if (before) free_[first] = before;
  if (after) free_[base + size] = after;
}

namespace {

/// The pages that hold the range.
std::pair<void*, std::size_t> pages_of(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t begin = page_down(address), end = page_up(address + size);
  return {reinterpret_cast<void*>(begin), end - begin};
}

}  // namespace

bool map_shared(std::uint64_t address, std::uint64_t size, int file, std::uint64_t offset) {
  void* const at = reinterpret_cast<void*>(address);
  if (::mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) ==
      MAP_FAILED)
    return false;
  ::madvise(at, size, MADV_DONTFORK);
  return true;
}

bool foreign_claims::share(std::uint64_t address, std::uint64_t size, int file) {
  // A file that can lose pages would let the server end this process.
  if (size_of_sealed_file(file).value_or(0) < address + size) return false;
  return claim(address, size) && map_shared(address, size, file, address);
}

bool foreign_claims::open(std::uint64_t address, std::uint64_t size) {
  if (!claim(address, size)) return false;
  const auto [begin, bytes] = pages_of(address, size);
  ::madvise(begin, bytes, MADV_DONTFORK);
  return ::mprotect(begin, bytes, PROT_READ | PROT_WRITE) == 0;
}

void foreign_claims::close(std::uint64_t address, std::uint64_t size) {
  const auto [begin, bytes] = pages_of(address, size);
  ::mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

std::uint64_t slot_addresses::take(std::uint64_t size, std::uint64_t alignment) {
  const std::lock_guard lock(mutex_);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const std::uint64_t base = (hole->first + alignment - 1) & ~(alignment - 1);
    const std::uint64_t skipped = base - hole->first;
    if (skipped > hole->second || hole->second - skipped < size) continue;
    cut(hole, base, size);
    return base;
  }
  return 0;
}

bool slot_addresses::take_at(std::uint64_t base, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  auto hole = free_.upper_bound(base);
  if (hole == free_.begin()) return false;
  --hole;
  const std::uint64_t skipped = base - hole->first;
  if (skipped > hole->second || hole->second - skipped < size) return false;
  cut(hole, base, size);
  return true;
}

void slot_addresses::give_back(std::uint64_t base, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  auto next = free_.lower_bound(base);
  if (next != free_.end() && base + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == base) {
      before->second += size;
      return;
    }
  }
  free_[base] = size;
}

std::vector<std::uint64_t> window_base_candidates() {
  // The last ones for programs that have something at all of the others. Programs linked to run anywhere lie
  // from 0x5555'0000'0000 on; 0x4000'0000'0000 and 0x5000'0000'0000 are the cpu device's.
  return {0x2000'0000'0000, 0x3000'0000'0000, 0x6000'0000'0000, 0x7e80'0000'0000 & ~0xffffffffffull,
          0x40'0000'0000,   0x3400'0000'0000, 0x4200'0000'0000, 0x1800'0000'0000};
}

}  // namespace outboard::frontend
