#include "backend/cuda/copying/locked_blocks.hh"

#include <sys/mman.h>

#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/memory/page_locks.hh"
#include "backend/cuda/relaxed_capture.hh"
#include "base/pages.hh"

namespace outboard::backend {
locked_blocks::~locked_blocks() {
  // The driver's part ends with the worker's process.
  for (const block& b : free_) ::munmap(b.data, b.size);
}

/// Its registration is of the context's present life.
bool locked_blocks::usable(const block& b) const {
  const auto life = lives_.find(b.context);
  return b.life == (life == lives_.end() ? 0 : life->second);
}

/// What is of no use, and the oldest beyond most_kept.
std::vector<locked_blocks::block> locked_blocks::surplus() {
  std::vector<block> gone;
  std::erase_if(free_, [&](block b) {
    const bool alive = usable(b);
    if (alive && kept_ <= most_kept) return false;
    b.locked = b.locked && alive;
    kept_ -= b.size;
    total_ -= b.size;
    gone.push_back(b);
    return true;
  });
  return gone;
}

std::optional<locked_blocks::block> locked_blocks::reuse(std::uint64_t size, std::uint64_t context) {
  const auto fits = std::ranges::find_if(
      free_, [&](const block& b) { return b.context == context && b.size >= size && b.size / 2 <= size; });
  if (fits == free_.end()) return std::nullopt;
  const block found = *fits;
  free_.erase(fits);
  kept_ -= found.size;
  return found;
}

locked_blocks::block locked_blocks::take(std::uint64_t size, std::uint64_t context) {
  const std::uint64_t wanted = page_up(size);
  if (wanted < size) return {};
  std::unique_lock lock(mutex_);
  const std::vector<block> gone = surplus();
  const auto found = gone.empty() ? reuse(wanted, context) : std::nullopt;
  if (found) return *found;
  block made{nullptr, wanted, false, context, lives_[context]};
  // Not with the lock: the driver may wait for a callback that gives a block back.
  lock.unlock();
  const relaxed_capture relaxed(driver_);
  for (const block& b : gone) {
    b.locked ? void(give_back_page_locked(driver_, b.data, b.size)) : void(::munmap(b.data, b.size));
  }
  void* memory = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  if (context) {
    const CUresult code =
        call_driver(driver_.cuMemHostRegister_v2, memory, wanted, CU_MEMHOSTREGISTER_PORTABLE);
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_SUPPORTED) return ::munmap(memory, wanted), block{};
    made.locked = code == CUDA_SUCCESS;
  }
  made.data = static_cast<std::byte*>(memory);
  lock.lock();
  total_ += wanted;
  return made;
}

void locked_blocks::give_back(const block& b) {
  const std::lock_guard lock(mutex_);
  kept_ += b.size;
  free_.push_back(b);
}

void locked_blocks::drop_context(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  ++lives_[context];
}

std::uint64_t locked_blocks::bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

}  // namespace outboard::backend
