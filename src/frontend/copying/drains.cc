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
#include "transport/spin.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds idle_for{2};

void read_into(std::span<std::byte> place, int file, std::uint64_t offset) {
  while (!place.empty()) {
    const ssize_t n = ::pread(file, place.data(), place.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the program has unmapped its memory
    place = place.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Pauses between two looks: a piece takes 20 us, but a stream may be busy for long.
void pause(unsigned rounds) {
  static const bool spins = transport::default_spin().count() > 0;
  if (rounds < 1000 && spins) return transport::spin_pause();
  if (rounds < 1200) return void(::sched_yield());
  const timespec nap{0, 50'000};
  ::nanosleep(&nap, nullptr);
}

}  // namespace

bool drains::is_done(const piece& p) {
  return std::atomic_ref<std::uint32_t>(*p.done).load(std::memory_order_acquire) ==
         p.value;  // partner: the device
}

bool drains::meet(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
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
  found->second.pop_back();  // no thread can have taken it: its word was never written
  if (found->second.empty()) queues_.erase(found);
  pending_.fetch_sub(1, std::memory_order_acq_rel);
}

bool drains::pending_in(std::uint64_t context) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(queues_, [&](const auto& q) { return q.first.context == context; }) ||
         std::ranges::any_of(delivering_, [&](const auto& c) { return c->of.context == context; });
}

bool drains::touch(std::span<const std::byte> memory) const {
  if (!pending()) return false;
  const std::lock_guard lock(mutex_);
  return touch_locked(memory);
}

bool drains::touch_locked(std::span<const std::byte> memory) const {
  const auto hits = [&](const numbered& n) { return meet(n.what.place, memory); };
  return std::ranges::any_of(queues_, [&](const auto& q) { return std::ranges::any_of(q.second, hits); }) ||
         std::ranges::any_of(delivering_, [&](const auto& c) { return hits(*c); });
}

/// Takes the finished piece that was requested first, unless a piece that is being delivered goes to the same
/// place. If one stream's copy follows another's and both go to one place, it was requested later. So the
/// later one's word is read first: if it is set, the earlier one's is too.
drains::numbered* drains::take_done(std::uint64_t highest, bool& blocked) {
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
  const auto in_the_way = [&](const auto& c) { return meet(c->what.place, first->front().what.place); };
  blocked = std::ranges::any_of(delivering_, in_the_way);
  if (blocked) return nullptr;
  delivering_.push_back(std::make_unique<numbered>(std::move(first->front())));
  first->pop_front();
  numbered& taken = *delivering_.back();
  if (first->empty()) queues_.erase(taken.of);
  return &taken;
}

/// The pieces of a stream finish in its order.
std::uint64_t drains::highest_done() const {
  std::uint64_t highest = 0;
  for (const auto& [key, queue] : queues_) {
    for (const numbered& n : queue) {
      if (!is_done(n.what)) break;
      highest = std::max(highest, n.number);
    }
  }
  for (const auto& c : delivering_) highest = std::max(highest, c->number);
  return highest;
}

/// Releases the lock while it copies.
void drains::deliver(std::unique_lock<std::mutex>& lock, numbered& taken) {
  lock.unlock();
  const piece& p = taken.what;
  read_into(p.place, p.file->get(), p.offset);
  std::atomic_ref<std::uint32_t>(*p.freed).store(p.value,
                                                 std::memory_order_release);  // partner: the device waits
  lock.lock();
  std::erase_if(delivering_, [&](const auto& c) { return c.get() == &taken; });
  pending_.fetch_sub(1, std::memory_order_acq_rel);
  landed_.notify_all();
}

void drains::collect() {
  if (!pending()) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t highest = highest_done();
  const auto concerns = [&](const auto& c) { return c->number <= highest; };
  for (bool blocked = false;;) {
    if (numbered* taken = take_done(highest, blocked)) {
      deliver(lock, *taken);
    } else if (blocked || std::ranges::any_of(delivering_, concerns)) {
      landed_.wait(lock);
    } else {
      return;
    }
  }
}

void drains::await(std::span<const std::byte> memory) {
  std::unique_lock lock(mutex_);
  while (touch_locked(memory)) landed_.wait(lock);  // the threads live while pieces are pending
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
  landed_.wait(lock,
               [&] { return std::ranges::none_of(delivering_, [&](auto& c) { return which(c->of); }); });
}

void drains::drop(std::uint64_t context) {
  drop_where([&](const stream_key& of) { return of.context == context; });
}

bool drains::drop_to(std::span<const std::byte> memory) {
  if (!pending()) return false;
  std::unique_lock lock(mutex_);
  const auto hits = [&](const numbered& n) { return meet(n.what.place, memory); };
  const bool any = touch_locked(memory);
  for (auto& [key, queue] : queues_)
    pending_.fetch_sub(std::erase_if(queue, hits), std::memory_order_acq_rel);
  std::erase_if(queues_, [](const auto& q) { return q.second.empty(); });
  landed_.notify_all();
  landed_.wait(lock, [&] { return std::ranges::none_of(delivering_, [&](auto& c) { return hits(*c); }); });
  return any;
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
      break;  // the process may not start more threads; if it has none, collect() delivers everything
    }
  }
}

/// One thread looks. Before it delivers what it has found, it wakes another one to continue looking.
void drains::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // Uses the system clock: waiting by the steady clock needs a newer C library (2.34) than we promise.
    const bool called = added_.wait_until(lock, std::chrono::system_clock::now() + idle_for,
                                          [&] { return !queues_.empty() && !looking_; });
    if (!called) break;  // nothing was added, or another thread looks
    looking_ = true;
    numbered* taken = nullptr;
    bool blocked = false;
    for (unsigned rounds = 0; !queues_.empty() && !(taken = take_done(last_number_, blocked)); ++rounds) {
      lock.unlock();
      pause(rounds);
      lock.lock();
    }
    looking_ = false;
    if (!queues_.empty()) added_.notify_one();
    if (taken) deliver(lock, *taken);
  }
  --threads_;
}

}  // namespace outboard::frontend
