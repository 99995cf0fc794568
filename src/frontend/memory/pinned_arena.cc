#include "frontend/memory/pinned_arena.hh"

#include "base/check.hh"

namespace outboard::frontend {
namespace {

/// Chunks are multiples of this on every page size in use (4, 16, 64 KiB).
constexpr std::uint64_t unit = 64u << 10;

/// Where the first chunk lies. What a program copies is searched for addresses of chunks, and one that is
/// found is compared at every launch from then on. Seen as two integers, an address right at the arena's base
/// is a pair such as (5000, 10240), which any table of counts holds; behind this distance the first number of
/// the pair is beyond 2 * 10^9.
constexpr std::uint64_t unlikely_numbers = 0x7a00'0000;

std::uint64_t whole(std::uint64_t size) { return (size + unit - 1) / unit * unit; }

}  // namespace

void pinned_arena::open(std::uint64_t base, std::uint64_t size, std::uint64_t small) {
  base_ = base;
  size_ = size;
  small_chunk_ = small;
  const std::uint64_t first = size >= 8 * unlikely_numbers ? unlikely_numbers : 0;
  free_ = std::make_unique<slot_addresses>(base + first, size - first);
}

void pinned_arena::set_small_chunk(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  CHECK(chunks_.empty());
  small_chunk_ = size;
}

CUresult pinned_arena::make_chunk(std::uint64_t size, const back_chunk& back, std::uint64_t& base) {
  base = free_->take(size, unit);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  pinned_chunk made{base, size};
  if (const CUresult code = back(made); code != CUDA_SUCCESS) {
    free_->give_back(base, size);
    return code;
  }
  if (!made.shared) has_private_.store(true, std::memory_order_relaxed);
  chunks_[base] = made;
  return CUDA_SUCCESS;
}

void pinned_arena::drop_chunk_at(std::uint64_t base, const drop_chunk& drop) {
  const auto found = chunks_.find(base);
  const pinned_chunk gone = found->second;
  chunks_.erase(found);
  drop(gone);
  free_->give_back(gone.base, gone.size);
}

CUresult pinned_arena::allocate(std::uint64_t size, const back_chunk& back, std::uint64_t& address) {
  const std::lock_guard lock(mutex_);
  if (!size_) return CUDA_ERROR_OUT_OF_MEMORY;
  in_use_.store(true, std::memory_order_relaxed);
  if (size > small_chunk_ / 2) return make_chunk(whole(size), back, address);
  while ((address = small_.take(size)) == 0) {
    std::uint64_t base = 0;
    if (const CUresult code = make_chunk(small_chunk_, back, base); code != CUDA_SUCCESS) return code;
    small_.add_granule(base, small_chunk_);
  }
  return CUDA_SUCCESS;
}

void pinned_arena::release(std::uint64_t address, std::uint64_t size, const drop_chunk& drop) {
  const std::lock_guard lock(mutex_);
  if (size > small_chunk_ / 2) return drop_chunk_at(address, drop);
  if (const std::uint64_t empty = small_.give_back(address, size)) drop_chunk_at(empty, drop);
}

std::optional<pinned_chunk> pinned_arena::chunk_of(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto after = chunks_.upper_bound(address);
  if (after == chunks_.begin()) return std::nullopt;
  const pinned_chunk& found = std::prev(after)->second;
  if (address - found.base >= found.size) return std::nullopt;
  return found;
}

void pinned_arena::unshare(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  has_private_.store(true, std::memory_order_relaxed);
  for (auto& [base, chunk] : chunks_) {
    if (context == 0 || chunk.context == context) chunk.shared = false;
  }
}

std::vector<pinned_chunk> pinned_arena::chunks() const {
  const std::lock_guard lock(mutex_);
  std::vector<pinned_chunk> out;
  for (const auto& [base, chunk] : chunks_) out.push_back(chunk);
  return out;
}

}  // namespace outboard::frontend
