// The threads of managed_blocks. One takes touches and fetches what is touched where no work is waited for;
// the server answers it whatever else it does. The other asks whether the work that closed a touched block is
// complete, which may take as long as that work, and exchanges changes with work that is not.
#include <algorithm>

#include "base/blocked_signals.hh"
#include "base/pages.hh"
#include "frontend/lane.hh"
#include "frontend/memory/managed_blocks.hh"

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;

/// Between two looks: at first most work ends soon after it was touched, later a look costs both sides more
/// than it is worth (a look and an exchange take 30 to 100 us).
constexpr std::chrono::nanoseconds first_pause = 10us, later_pause = 200us;
constexpr std::chrono::milliseconds soon{2};
/// At what a running kernel writes: a flag that came may stand for bytes that the same look had passed before
/// they were written. The next one finds them.
constexpr int looks = 2;

}  // namespace

bool managed_blocks::start(session& server, work_questions ask) {
  const std::lock_guard lock(mutex_);
  if (started_.load(std::memory_order_relaxed)) return true;
  if (!gate_.open()) return false;
  server_ = &server;
  ask_ = std::move(ask);
  const blocked_signals blocked;  // signals are the program's business (design section 5.4)
  threads_ += 2;
  std::thread([this] { take_touches(); }).detach();
  std::thread([this] { look_at_work(); }).detach();
  started_.store(true, std::memory_order_release);
  return true;
}

void managed_blocks::take_touches() {
  lane& own = this_lane();
  std::optional<std::chrono::nanoseconds> pause;
  while (!ended_.load()) {
    while (const auto address = gate_.next_touch(pause)) {
      note_touch(*address);
      pause = 0ns;
    }
    pause = refresh_all(own);
  }
  --threads_;
}

void managed_blocks::look_at_work() {
  lane& own = this_lane();
  while (!ended_.load()) {
    const auto pause = step(own);
    std::unique_lock lock(mutex_);
    if (pause) {
      work_touched_.wait_for(lock, *pause);
    } else {
      work_touched_.wait(lock, [this] {
        return ended_.load() || std::ranges::any_of(busy_, [this](std::uint64_t base) {
                 return waits_for_work(blocks_.at(base));
               });
      });
    }
  }
  --threads_;
}

/// Somebody sleeps in it until its work is complete, or it is exchanged with that. With the lock.
bool managed_blocks::waits_for_work(const block& b) {
  return b.closed && !b.lent && (!b.touched.empty() || !b.windows.empty());
}

/// All blocks in the page wait for it.
void managed_blocks::note_touch(std::uint64_t address) {
  const std::uint64_t page = page_size(), first = page_down(address);
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (auto b = blocks_.lower_bound(first + page); b != blocks_.begin();) {
    block& near = (--b)->second;
    if (near.base + near.size <= first) break;
    if (!near.closed) continue;
    any = true;
    const std::uint64_t at = std::max(first, near.base) - near.base;
    const bool open_again = std::any_of(near.windows.begin(), near.windows.end(),
                                        [&](const byte_range& w) { return at >= w.begin && at < w.end; });
    if (open_again) continue;  // it was closed for an exchange, and who slept there is awake
    if (near.touched.empty()) near.since = near.looked = near.changed = clock::now();
    near.touched.push_back(std::max(first, near.base));
    if (near.users.empty()) {
      stirred_.insert(near.base);
    } else {
      work_touched_.notify_all();
    }
  }
  if (!any) gate_.reopen(first, page);  // opened meanwhile: nobody may sleep there
}

/// Nothing: nobody is left for this thread.
std::optional<std::chrono::nanoseconds> managed_blocks::refresh_all(lane& own) {
  std::vector<std::uint64_t> bases;
  {
    const std::lock_guard lock(mutex_);
    bases.assign(stirred_.begin(), stirred_.end());
    for (const std::uint64_t base : busy_) {
      const block& b = blocks_.at(base);
      if (b.closed && b.lent && !b.touched.empty()) bases.push_back(base);
    }
  }
  std::optional<std::chrono::nanoseconds> pause;
  for (const std::uint64_t base : bases) {
    if (!refresh(own, base)) pause = first_pause;
  }
  return pause;
}

std::optional<std::chrono::nanoseconds> managed_blocks::step(lane& own) {
  std::vector<std::uint64_t> bases;
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t base : busy_) {
      if (waits_for_work(blocks_.at(base))) bases.push_back(base);
    }
  }
  std::optional<std::chrono::nanoseconds> pause;
  for (const std::uint64_t base : bases) {
    if (settle(own, base)) continue;
    std::chrono::nanoseconds waited{};
    bool touched = false, shared = false;
    {
      const std::lock_guard lock(mutex_);
      const auto found = blocks_.find(base);
      if (found == blocks_.end() || !waits_for_work(found->second)) continue;
      if (found->second.users.empty()) continue;  // the other thread's
      touched = !found->second.touched.empty();
      shared = !found->second.windows.empty();
      waited = clock::now() - found->second.since;
    }
    if (touched && (shared || out_of_patience(own, base))) open_window(own, base);
    if (shared) exchange(own, base);
    const bool new_touch = touched && !shared && waited < soon;
    pause = new_touch ? first_pause : pause.value_or(later_pause);
  }
  return pause;
}

/// Variables may share a page, and kernels name them all.
std::vector<std::uint64_t> managed_blocks::together(const block& b) const {
  if (!b.variable) return {b.base};
  std::vector<std::uint64_t> bases;
  for (const auto& [base, other] : blocks_) {
    if (other.variable) bases.push_back(base);
  }
  return bases;
}

/// True: nothing is left to do for this block.
bool managed_blocks::settle(lane& own, std::uint64_t base) {
  std::map<work_flow, std::uint64_t> users;
  std::vector<std::uint64_t> bases;
  std::uint64_t closing = 0;
  bool lazy = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(base);
    if (found == blocks_.end() || !found->second.closed) return true;
    users = found->second.users;
    closing = found->second.closing;
    lazy = found->second.lazy;
    bases = together(found->second);
    // A question now might overtake the request.
    for (const auto& [flow, number] : users) {
      if (leaving_.contains(number)) return false;
    }
  }
  if (!ask_.may_ask()) return false;
  for (const auto& [flow, number] : users) {
    if (!flow_done(own, flow, number)) return note_issued(own, base, flow, closing), false;
  }
  const std::uint64_t context = users.empty() ? 0 : users.begin()->first.context;
  // What cannot be fetched (the session is lost, the context is broken) is not waited for either.
  for (const std::uint64_t one : bases) {
    if (!lazy) (void)mirrors_.fetch_range(*server_, own, context, one, {});
  }
  const std::lock_guard lock(mutex_);
  bool open_all = true;
  for (const std::uint64_t one : bases) {
    const auto found = blocks_.find(one);
    if (found == blocks_.end()) continue;
    for (const auto& [flow, number] : users) {
      const auto user = found->second.users.find(flow);
      if (user != found->second.users.end() && user->second <= number) found->second.users.erase(user);
    }
    open_all = open_all && found->second.users.empty();
  }
  if (!open_all) return false;  // it is used again already
  for (const std::uint64_t one : bases) {
    const auto found = blocks_.find(one);
    if (found == blocks_.end()) continue;
    rest(found->second);
    busy_.erase(one);
  }
  return !lazy;
}

/// Fetches what is touched of a block whose work is complete, or is not waited for because a host function
/// runs, and opens it. False: somebody still waits.
bool managed_blocks::refresh(lane& own, std::uint64_t base) {
  byte_range part;
  std::uint64_t closing = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(base);
    if (found == blocks_.end() || !found->second.closed || found->second.touched.empty())
      return stirred_.erase(base), true;
    if (!idle(found->second) && !found->second.lent)
      return stirred_.erase(base), false;  // it has work by now
    part = next_part(found->second);
    closing = found->second.closing;
  }
  mirrors_.fetch_window(*server_, own, base, part);
  const std::lock_guard lock(mutex_);
  block* const b = closed_by(base, closing);
  if (!b || !(idle(*b) || b->lent)) return false;  // used meanwhile: what was fetched may be older than that
  if (part.end - part.begin == b->size) return open(*b), true;
  join(b->windows, part);
  gate_.reopen(base + part.begin, part.end - part.begin);
  std::erase_if(b->touched,
                [&](std::uint64_t at) { return at - base >= part.begin && at - base < part.end; });
  if (b->touched.empty()) stirred_.erase(base);
  return b->touched.empty();
}

/// From the touch on; who goes through the block in order should not fault for every piece.
byte_range managed_blocks::next_part(block& b) {
  const std::uint64_t begin = (b.touched.front() - b.base) / first_window * first_window;
  const bool onwards = begin >= b.last_end && begin - b.last_end < b.next_window;
  b.next_window = onwards ? std::min(most_window, b.next_window * 4) : first_window;
  byte_range part{begin, begin + b.next_window};
  if (b.windows.size() >= windows_allowed()) part = {0, b.size};
  if (part.end >= b.used) part.end = b.size;  // what rounds the block up is nobody's
  b.last_end = part.end;
  return part;
}

bool managed_blocks::flow_done(lane& own, const work_flow& flow, std::uint64_t number) {
  if (flow.can_be_asked()) return ask_.query(own, flow) != CUDA_ERROR_NOT_READY;
  return context_done(flow.context, number);
}

/// Where a stream was asked, the driver had all that had left before. Only from then on can work be said to
/// wait for the touch: before, the launch may be loading its module. Later launches of others do not count.
void managed_blocks::note_issued(lane& own, std::uint64_t base, const work_flow& unfinished,
                                 std::uint64_t closing) {
  {
    const std::lock_guard lock(mutex_);
    const block* b = closed_by(base, closing);
    if (!b || b->issued) return;
  }
  constexpr std::uint64_t legacy = 0;
  if (!unfinished.can_be_asked()) (void)ask_.query(own, {unfinished.context, legacy});
  const std::lock_guard lock(mutex_);
  block* b = closed_by(base, closing);
  if (!b) return;
  b->issued = true;
  b->since = b->looked = b->changed = clock::now();
  b->seen.clear();
}

/// A stream that only its own thread can name: all of the context is waited for, by a thread that may.
bool managed_blocks::context_done(std::uint64_t context, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  context_wait& w = waits_[context];
  if (w.done >= number) return true;
  w.wanted = std::max(w.wanted, number);
  if (!w.begun) {
    w.begun = true;
    const blocked_signals blocked;
    ++threads_;
    std::thread([this, context, &w] { wait_in(context, w); }).detach();
  }
  waits_changed_.notify_all();
  return false;
}

void managed_blocks::wait_in(std::uint64_t context, context_wait& w) {
  lane& own = this_lane();
  std::unique_lock lock(mutex_);
  while (!ended_.load()) {
    if (w.wanted <= w.done) {
      waits_changed_.wait(lock);
      continue;
    }
    const std::uint64_t covered = all_left();
    lock.unlock();
    ask_.wait_for_all(own, context);
    lock.lock();
    w.done = covered;
  }
  lock.unlock();  // whoever waits for the last thread may then destroy the lock
  --threads_;
}

/// Has the work neither ended nor changed anything around the touch for so long that it may wait for it?
bool managed_blocks::out_of_patience(lane& own, std::uint64_t base) {
  byte_range part;
  std::uint64_t context = 0;
  clock::time_point now = clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(base);
    if (found == blocks_.end() || found->second.touched.empty()) return false;
    const block& b = found->second;
    if (now - b.since >= most_patience) return true;
    if (!b.issued || now - b.looked < patience / 4) return false;
    part.begin = (b.touched.front() - base) / first_window * first_window;
    part.end = std::min(b.size, part.begin + first_window);
    if (!b.users.empty()) context = b.users.begin()->first.context;
  }
  (void)mirrors_.fetch_range(*server_, own, context, base, part);
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(base);
  if (found == blocks_.end() || !found->second.closed) return false;
  block& b = found->second;
  const std::byte* begin = b.view + (base - b.first_page) + part.begin;
  const std::span<const std::byte> there(begin, part.end - part.begin);
  now = clock::now();
  if (!std::equal(there.begin(), there.end(), b.seen.begin(), b.seen.end())) {
    b.changed = now;
    b.seen.assign(there.begin(), there.end());
  }
  b.looked = now;
  return now - b.changed >= patience;
}

/// The block, unless it was opened meanwhile: it may be closed again by now, for other work. With the lock.
managed_blocks::block* managed_blocks::closed_by(std::uint64_t base, std::uint64_t closing) {
  const auto found = blocks_.find(base);
  const bool same = found != blocks_.end() && found->second.closed && found->second.closing == closing;
  return same ? &found->second : nullptr;
}

void managed_blocks::open_window(lane& own, std::uint64_t base) {
  byte_range part;
  std::uint64_t context = 0, closing = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(base);
    if (found == blocks_.end() || found->second.touched.empty()) return;
    block& b = found->second;
    closing = b.closing;
    const std::uint64_t offset = b.touched.front() - b.base;
    part.begin = b.variable ? 0 : offset / b.next_window * b.next_window;
    part.end = b.variable ? b.size : std::min(b.size, part.begin + b.next_window);
    // Who touches much of it should not fault for every piece.
    b.next_window = std::min(most_window, b.next_window * 4);
    if (!b.users.empty()) context = b.users.begin()->first.context;
  }
  for (int look = 0; look < looks; ++look) (void)mirrors_.fetch_range(*server_, own, context, base, part);
  const std::lock_guard lock(mutex_);
  block* const same = closed_by(base, closing);
  if (!same) return;
  block& b = *same;
  mirrors_.open_window(base, part);
  join(b.windows, part);
  const std::uint64_t begin = b.variable ? b.first_page : base + part.begin;
  gate_.reopen(begin, b.variable ? b.pages : part.end - part.begin);
  std::erase_if(b.touched, [&](std::uint64_t at) { return at - base >= part.begin && at - base < part.end; });
  if (!b.touched.empty()) b.since = clock::now() - patience;
}

void managed_blocks::exchange(lane& own, std::uint64_t base) {
  std::vector<byte_range> windows;
  std::uint64_t context = 0, closing = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(base);
    if (found == blocks_.end() || found->second.users.empty()) return;
    windows = found->second.windows;
    closing = found->second.closing;
    context = found->second.users.begin()->first.context;
  }
  // What the program does meanwhile waits: its stores go all or not at all, and it sees a kernel's together.
  if (!set_windows(base, closing, false)) return;
  for (const byte_range part : windows) (void)mirrors_.send_range(*server_, own, context, base, part);
  for (int look = 0; look < looks; ++look) {
    for (const byte_range part : windows) (void)mirrors_.fetch_range(*server_, own, context, base, part);
  }
  (void)set_windows(base, closing, true);
}

/// False: the block was opened meanwhile.
bool managed_blocks::set_windows(std::uint64_t base, std::uint64_t closing, bool open) {
  const std::lock_guard lock(mutex_);
  const block* b = closed_by(base, closing);
  if (!b) return false;
  for (const byte_range part : b->windows) {
    const std::uint64_t begin = b->variable ? b->first_page : base + part.begin;
    const std::uint64_t bytes = b->variable ? b->pages : part.end - part.begin;
    if (open) {
      gate_.reopen(begin, bytes);
    } else {
      (void)gate_.close(begin, bytes);
    }
  }
  return true;
}

}  // namespace outboard::frontend
