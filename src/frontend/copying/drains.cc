#include "frontend/copying/drains.hh"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>

#include "base/blocked_signals.hh"
#include "base/overlap.hh"
#include "transport/spin.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds idle_for{2};

void read_into(std::span<std::byte> place, int file, std::uint64_t offset) {
  while (!place.empty()) {
    const ssize_t n = ::pread(file, place.data(), place.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the program has taken its memory away
    place = place.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Between two looks: a piece takes 20 us, a stream may be busy for long.
void pause(unsigned rounds) {
  static const bool spins = transport::default_spin().count() > 0;
  if (rounds < 1000 && spins) return transport::spin_pause();
  if (rounds < 1200) return void(::sched_yield());
  const timespec nap{0, 50'000};
  ::nanosleep(&nap, nullptr);
}

}  // namespace

bool drains::is_done(const piece& p) {
  return std::atomic_ref<std::uint32_t>(*p.done).load(std::memory_order_acquire) == p.value;  // the device
}

bool drains::add(const stream_key& of, piece made) {
  const std::lock_guard lock(mutex_);
  start_threads();
  if (threads_ == 0) return false;
  queues_[of].push_back({++last_number_, of, std::move(made)});
  pending_.fetch_add(1, std::memory_order_acq_rel);
  if (!looking_) added_.notify_one();
  return true;
}

void drains::take_back(const stream_key& of) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(of);
  found->second.pop_back();  // nobody else can have claimed it: its word was never written
  if (found->second.empty()) queues_.erase(found);
  pending_.fetch_sub(1, std::memory_order_acq_rel);
}

bool drains::pending_in(std::uint64_t context) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(queues_, [&](const auto& q) { return q.first.context == context; }) ||
         std::ranges::any_of(carried_, [&](const auto& c) { return c->of.context == context; });
}

bool drains::touch(std::span<const std::byte> memory) const {
  if (!pending()) return false;
  const std::lock_guard lock(mutex_);
  return touch_locked(memory);
}

bool drains::touch_locked(std::span<const std::byte> memory) const {
  const auto hits = [&](const numbered& n) { return overlap(n.what.place, memory); };
  return std::ranges::any_of(queues_, [&](const auto& q) { return std::ranges::any_of(q.second, hits); }) ||
         std::ranges::any_of(carried_, [&](const auto& c) { return hits(*c); });
}

/// The piece that was asked for first of those that are done, unless one that is being carried goes to the
/// same place. Where one stream's copy lies behind another's, both to one place, it was asked for later: so
/// the later one's word is read first, and if it is there the earlier one's is.
drains::numbered* drains::claim(std::uint64_t highest, bool& blocked) {
  blocked = false;
  std::vector<std::deque<numbered>*> heads;
  for (auto& [key, queue] : queues_) {
    if (queue.front().number <= highest) heads.push_back(&queue);
  }
  std::ranges::sort(heads, std::greater{}, [](const auto* queue) { return queue->front().number; });
  std::deque<numbered>* first = nullptr;
  for (std::deque<numbered>* queue : heads) {
    if (is_done(queue->front().what)) first = queue;
  }
  if (!first) return nullptr;
  const auto in_the_way = [&](const auto& c) { return overlap(c->what.place, first->front().what.place); };
  blocked = std::ranges::any_of(carried_, in_the_way);
  if (blocked) return nullptr;
  carried_.push_back(std::make_unique<numbered>(std::move(first->front())));
  first->pop_front();
  numbered& claimed = *carried_.back();
  if (first->empty()) queues_.erase(claimed.of);
  return &claimed;
}

/// Pieces of a stream are done in its order.
std::uint64_t drains::highest_done() const {
  std::uint64_t highest = 0;
  for (const auto& [key, queue] : queues_) {
    for (const numbered& n : queue) {
      if (!is_done(n.what)) break;
      highest = std::max(highest, n.number);
    }
  }
  for (const auto& c : carried_) highest = std::max(highest, c->number);
  return highest;
}

/// Without the lock meanwhile.
void drains::carry(std::unique_lock<std::mutex>& lock, numbered& claimed) {
  lock.unlock();
  const piece& p = claimed.what;
  read_into(p.place, p.file->get(), p.offset);
  std::atomic_ref<std::uint32_t>(*p.freed).store(p.value, std::memory_order_release);  // the device waits
  lock.lock();
  std::erase_if(carried_, [&](const auto& c) { return c.get() == &claimed; });
  pending_.fetch_sub(1, std::memory_order_acq_rel);
  landed_.notify_all();
}

void drains::collect() {
  if (!pending()) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t highest = highest_done();
  const auto concerns = [&](const auto& c) { return c->number <= highest; };
  for (bool blocked = false;;) {
    if (numbered* claimed = claim(highest, blocked)) {
      carry(lock, *claimed);
    } else if (blocked || std::ranges::any_of(carried_, concerns)) {
      landed_.wait(lock);
    } else {
      return;
    }
  }
}

void drains::await(std::span<const std::byte> memory) {
  std::unique_lock lock(mutex_);
  while (touch_locked(memory)) landed_.wait(lock);  // the threads live while there is something
}

template <class Which>
void drains::drop_where(Which&& which) {
  std::unique_lock lock(mutex_);
  std::erase_if(queues_, [&](const auto& q) {
    if (!which(q.first)) return false;
    pending_.fetch_sub(q.second.size(), std::memory_order_acq_rel);
    return true;
  });
  landed_.notify_all();
  landed_.wait(lock, [&] { return std::ranges::none_of(carried_, [&](auto& c) { return which(c->of); }); });
}

void drains::drop(std::uint64_t context) {
  drop_where([&](const stream_key& of) { return of.context == context; });
}

void drains::drop_all() {
  drop_where([](const stream_key&) { return true; });
}

void drains::start_threads() {
  const blocked_signals blocked;
  for (; threads_ < most_threads_; ++threads_) {
    try {
      std::thread([self = shared_from_this()] { self->work(); }).detach();
    } catch (const std::system_error&) {
      break;  // the process may have no more threads: then what asks for completion carries all
    }
  }
}

/// One thread looks; before it carries what it has found, it wakes another one to look on.
void drains::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // By the system's clock: the wait by the steady one asks for a C library newer than we promise (2.34).
    const bool called = added_.wait_until(lock, std::chrono::system_clock::now() + idle_for,
                                          [&] { return !queues_.empty() && !looking_; });
    if (!called) break;  // nothing, or another thread looks
    looking_ = true;
    numbered* claimed = nullptr;
    bool blocked = false;
    for (unsigned rounds = 0; !queues_.empty() && !(claimed = claim(last_number_, blocked)); ++rounds) {
      lock.unlock();
      pause(rounds);
      lock.lock();
    }
    looking_ = false;
    if (!queues_.empty()) added_.notify_one();
    if (claimed) carry(lock, *claimed);
  }
  --threads_;
}

}  // namespace outboard::frontend
