#include "backend/staging.hh"

#include <cstdlib>

namespace outboard::backend {

staging::~staging() {
  // The worker ends with its session, and with it everything the driver holds: only ordinary memory is ours
  // to free.
  const auto drop = [](const block& b) {
    if (!b.pinned) std::free(b.data);
  };
  for (auto& list : free_) {
    for (const block& b : list) drop(b);
  }
  for (const block& b : busy_) drop(b);
}

std::size_t staging::bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

staging::block staging::make(std::size_t size_class) {
  block b;
  b.size_class = size_class;
  b.size = smallest << size_class;
  void* memory = nullptr;
  if (driver_.cuMemHostAlloc &&
      driver_.cuMemHostAlloc(&memory, b.size, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS) {
    b.pinned = true;
  } else {
    memory = std::aligned_alloc(4096, b.size);
  }
  b.data = static_cast<std::byte*>(memory);
  return b;
}

void staging::reap() {
  while (!busy_.empty() && driver_.cuEventQuery(busy_.front().done) != CUDA_ERROR_NOT_READY) {
    free_[busy_.front().size_class].push_back(busy_.front());
    busy_.pop_front();
  }
}

/// With a lock that is not held meanwhile: what is waited for may itself wait for bytes that others give
/// back.
void staging::wait_for_oldest(std::unique_lock<std::mutex>& lock) {
  const block oldest = busy_.front();
  busy_.pop_front();
  lock.unlock();
  driver_.cuEventSynchronize(oldest.done);
  lock.lock();
  free_[oldest.size_class].push_back(oldest);
}

/// An event belongs to one context: a block that changes hands between contexts gets a new one.
staging::block staging::claim(block b, std::uint64_t context) {
  if (b.done && b.context != context) {
    driver_.cuEventDestroy_v2(b.done);
    b.done = nullptr;
  }
  b.context = context;
  return b;
}

staging::block staging::take(std::size_t size, std::uint64_t context) {
  std::unique_lock lock(mutex_);
  std::size_t size_class = 0;
  while ((smallest << size_class) < size) ++size_class;
  const std::size_t whole = smallest << size_class;
  if (free_[size_class].empty()) reap();
  while (free_[size_class].empty() && total_ + whole > limit && !busy_.empty()) wait_for_oldest(lock);
  if (!free_[size_class].empty()) {
    block b = free_[size_class].back();
    free_[size_class].pop_back();
    return claim(b, context);
  }
  total_ += whole;
  lock.unlock();  // the driver may be at work for another thread that waits for one of ours
  block b = make(size_class);
  if (b.data) return claim(b, context);
  lock.lock();
  total_ -= whole;
  return b;
}

void staging::give_back(block b) {
  const std::lock_guard lock(mutex_);
  free_[b.size_class].push_back(b);
}

void staging::give_back_after(block b, CUstream stream, bool per_thread) {
  auto* record = per_thread ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  if (!b.done && driver_.cuEventCreate(&b.done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) b.done = nullptr;
  if (!b.done || record(b.done, stream) != CUDA_SUCCESS) {
    driver_.cuCtxSynchronize();  // rather slow than bytes overwritten under a copy
    return give_back(b);
  }
  const std::lock_guard lock(mutex_);
  busy_.push_back(b);
}

}  // namespace outboard::backend
