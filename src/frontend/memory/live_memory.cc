#include "frontend/memory/live_memory.hh"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/blocked_signals.hh"
#include "frontend/lane.hh"

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;

/// Between two exchanges: who waits for a word waits for half a millisecond at most; an exchange may take a
/// fifth of the time, where much memory is looked at or the line is long.
constexpr std::chrono::nanoseconds least_pause = 200us, quiet_pause = 500us, most_pause = 20ms;
constexpr int share = 4;
/// Nothing has moved for so long: nobody is in the middle of an exchange of words.
constexpr auto quiet_after = 1s;
/// A program that begins work sends its changes with it, and learns of the other ones when it waits: it is
/// not held up by exchanges more often than this.
constexpr auto while_it_calls = 20ms;
/// The thread looks for new work for so long before it must be woken: that costs the program a system call.
constexpr auto lingering = 200ms;
constexpr std::size_t most_events = 4096;
constexpr std::chrono::nanoseconds linger_pause = 1ms;

}  // namespace

void live_memory::begins(session& server, const work_flow& flow, bool awaits_word) {
  const std::lock_guard lock(mutex_);
  latest& l = flows_[flow];
  l.mark = mark_.fetch_add(1, std::memory_order_acq_rel) + 1;
  l.awaits_word |= awaits_word;
  any_.store(true, std::memory_order_release);
  if (awaits_word) awaited_.store(true, std::memory_order_release);
  if (!started_) {
    started_ = true;
    server_ = &server;
    const blocked_signals blocked;  // signals are the program's business (design section 5.4)
    std::thread([this] { serve(); }).detach();
  }
  if (asleep_) changed_.notify_all();
}

void live_memory::over(const work_flow& flow, std::uint64_t mark) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  const auto found = flows_.find(flow);
  if (found == flows_.end() || found->second.mark > mark) return;
  flows_.erase(found);
  count();
}

void live_memory::context_over(std::uint64_t context, std::uint64_t mark) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(flows_, [&](const auto& f) { return f.first.context == context && f.second.mark <= mark; });
  count();
}

void live_memory::recorded(std::uint64_t event, const work_flow& flow) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  if (!flows_.contains(flow)) return void(events_.erase(event));
  if (events_.size() >= most_events)
    events_.clear();  // what they stand for goes on until something else tells
  events_[event] = {flow, mark()};
}

void live_memory::event_over(std::uint64_t event) {
  if (!any()) return;
  std::unique_lock lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  const auto [flow, mark] = found->second;
  events_.erase(found);
  lock.unlock();
  over(flow, mark);
}

void live_memory::count() {
  any_.store(!flows_.empty(), std::memory_order_release);
  const bool awaited = std::ranges::any_of(flows_, [](const auto& f) { return f.second.awaits_word; });
  awaited_.store(awaited, std::memory_order_release);
}

void live_memory::stop() {
  const std::lock_guard lock(mutex_);
  ended_.store(true);
  changed_.notify_all();
}

void live_memory::serve() {
  lane& own = this_lane();
  auto worked = clock::now();
  std::chrono::nanoseconds pause = least_pause;
  while (!ended_.load()) {
    std::this_thread::sleep_for(pause);
    std::unique_lock lock(mutex_);
    if (flows_.empty()) {
      pause = linger_pause;
      if (clock::now() - worked < lingering) continue;
      asleep_ = true;
      changed_.wait(lock, [&] { return !flows_.empty() || ended_.load(); });
      asleep_ = false;
      pause = least_pause;
      worked = clock::now();
      continue;
    }
    lock.unlock();
    pause = step(own);
    worked = clock::now();
  }
}

std::chrono::nanoseconds live_memory::step(lane& own) {
  std::uint64_t context = 0;
  {
    const std::lock_guard lock(mutex_);
    if (flows_.empty()) return linger_pause;
    context = flows_.begin()->first.context;
  }
  const auto now = clock::now();
  const bool calls = std::exchange(seen_mark_, mark()) != mark();
  if (calls && now - looked_ < while_it_calls) return least_pause;
  const bool all = now >= next_all_;
  bool moved = false;
  const CUresult code = mirrors_.exchange(*server_, own, context, all, moved);
  looked_ = clock::now();
  if (moved) moved_ = looked_;
  // What cannot be looked at (the session is lost, the context is broken or gone) is not waited for either.
  if (code != CUDA_SUCCESS) context_over(context, mark());
  (all ? usual_all_ : usual_).took(looked_ - now);
  if (all) next_all_ = looked_ + share * usual_all_.least();
  const auto least = looked_ - moved_ > quiet_after ? quiet_pause : least_pause;
  return std::clamp<std::chrono::nanoseconds>(share * usual_.least(), least, most_pause);
}

}  // namespace outboard::frontend
