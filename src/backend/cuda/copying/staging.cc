#include "backend/cuda/copying/staging.hh"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/memory/page_locks.hh"
#include "backend/cuda/relaxed_capture.hh"

namespace outboard::backend {

staging::~staging() {
  // The worker ends with its session, and with it everything the driver holds.
  for (auto& list : free_) {
    for (const block& b : list) ::munmap(b.data, b.size);
  }
  for (const block& b : busy_) ::munmap(b.data, b.size);
}

std::size_t staging::bytes() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

/// Memory of our own that the driver locks: with a context of its own it would vanish under those who read
/// it.
staging::block staging::make(std::size_t size_class, std::uint64_t context, std::uint64_t life) {
  block b;
  b.size_class = size_class;
  b.size = smallest << size_class;
  b.context = context;
  b.life = life;
  void* memory = ::mmap(nullptr, b.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return b;
  const relaxed_capture relaxed(driver_);
  b.pinned =
      call_driver(driver_.cuMemHostRegister_v2, memory, b.size, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
  b.data = static_cast<std::byte*>(memory);
  return b;
}

bool staging::alive(const block& b) const {
  const auto life = lives_.find(b.context);
  return b.life == (life == lives_.end() ? 0 : life->second);
}

void staging::put_back(const block& b) {
  if (alive(b)) return free_[b.size_class].push_back(b);
  ::munmap(b.data, b.size);
  total_ -= b.size;
}

void staging::drop_context(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  ++lives_[context];
  for (auto& list : free_) {
    for (const block& b : std::exchange(list, {})) put_back(b);
  }
  for (const block& b : std::exchange(busy_, {})) {
    if (alive(b)) {
      busy_.push_back(b);
    } else {
      put_back(b);
    }
  }
}

void staging::reap() {
  while (!busy_.empty() && driver_.cuEventQuery(busy_.front().done) != CUDA_ERROR_NOT_READY) {
    put_back(busy_.front());
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
  put_back(oldest);
}

std::optional<staging::block> staging::find(std::size_t size_class, std::uint64_t context) {
  std::vector<block>& list = free_[size_class];
  const auto mine =
      std::find_if(list.rbegin(), list.rend(), [&](const block& b) { return b.context == context; });
  if (mine == list.rend()) return std::nullopt;
  const block found = *mine;
  list.erase(std::next(mine).base());
  return found;
}

/// A free block that fits nobody here: of another size or context.
bool staging::let_one_go(std::unique_lock<std::mutex>& lock) {
  const auto alone = [](const block& b) { return !b.of_slab; };
  const auto list = std::ranges::find_if(free_, [&](const auto& l) { return std::ranges::any_of(l, alone); });
  if (list == std::end(free_)) return false;
  const auto at = std::ranges::find_if(*list, alone);
  const block gone = *at;
  list->erase(at);
  total_ -= gone.size;
  lock.unlock();
  const relaxed_capture relaxed(driver_);
  if (gone.done) driver_.cuEventDestroy_v2(gone.done);
  gone.pinned ? void(give_back_page_locked(driver_, gone.data, gone.size))
              : void(::munmap(gone.data, gone.size));
  lock.lock();
  return true;
}

staging::block staging::take(std::size_t size, std::uint64_t context) {
  std::unique_lock lock(mutex_);
  std::size_t size_class = 0;
  while ((smallest << size_class) < size) ++size_class;
  const std::size_t whole = smallest << size_class;
  while (true) {
    if (const auto found = find(size_class, context)) return *found;
    reap();
    if (const auto found = find(size_class, context)) return *found;
    if (total_ + whole <= limit) break;
    if (let_one_go(lock)) continue;
    if (busy_.empty()) break;
    wait_for_oldest(lock);
  }
  total_ += whole;
  const std::uint64_t life = lives_[context];
  lock.unlock();  // the driver may be at work for another thread that waits for one of ours
  const block b = make(size_class, context, life);
  if (b.data) return b;
  lock.lock();
  total_ -= whole;
  return b;
}

void staging::prepare(std::size_t size, std::size_t count, std::uint64_t context) {
  constexpr std::size_t huge_page = 2u << 20;
  block part;
  while ((smallest << part.size_class) < size) ++part.size_class;
  part.size = smallest << part.size_class;
  part.context = context;
  part.of_slab = part.pinned = true;
  const std::size_t whole = part.size * count;
  {
    const std::lock_guard lock(mutex_);
    part.life = lives_[context];
    if (std::exchange(prepared_[context], part.life + 1) == part.life + 1 || total_ + whole > limit) return;
    total_ += whole;
  }
  // Few large pages are zeroed and locked in a fraction of the time of many small ones.
  void* memory = ::mmap(nullptr, whole + huge_page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  std::byte* begin = nullptr;
  if (memory != MAP_FAILED) {
    auto* const mapped = static_cast<std::byte*>(memory);
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
    begin = mapped + before;
    if (before) ::munmap(mapped, before);
    ::munmap(begin + whole, huge_page - before);
    ::madvise(begin, whole, MADV_HUGEPAGE);
    const relaxed_capture relaxed(driver_);
    if (call_driver(driver_.cuMemHostRegister_v2, begin, whole, CU_MEMHOSTREGISTER_PORTABLE) !=
        CUDA_SUCCESS) {
      ::munmap(begin, whole);
      begin = nullptr;
    }
  }
  const std::lock_guard lock(mutex_);
  if (!begin) return void(total_ -= whole);
  for (std::size_t n = 0; n < count; ++n) {
    part.data = begin + n * part.size;
    put_back(part);
  }
}

void staging::give_back(block b) {
  const std::lock_guard lock(mutex_);
  put_back(b);
}

void staging::give_back_after(block b, CUstream stream, bool per_thread) {
  auto* record = per_thread ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  if (!b.done && driver_.cuEventCreate(&b.done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) b.done = nullptr;
  if (!b.done || record(b.done, stream) != CUDA_SUCCESS) {
    // Rather slow than bytes overwritten under a copy. Of the stream: it may be another context's.
    (per_thread ? driver_.cuStreamSynchronize_ptsz : driver_.cuStreamSynchronize)(stream);
    return give_back(b);
  }
  const std::lock_guard lock(mutex_);
  busy_.push_back(b);
}

}  // namespace outboard::backend
