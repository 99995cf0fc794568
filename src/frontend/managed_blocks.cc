#include "frontend/managed_blocks.hh"

#include <unistd.h>

#include <algorithm>

#include "base/log.hh"
#include "base/pages.hh"
#include "frontend/lane.hh"
#include "marshal/memory_changes.hh"

namespace outboard::frontend {
std::byte* managed_blocks::add(std::uint64_t base, std::uint64_t size, bool variable) {
  block b;
  b.base = base;
  b.size = size;
  b.variable = variable;
  b.first_page = page_down(base);
  b.pages = page_up(base + size) - b.first_page;
  const std::lock_guard lock(mutex_);
  b.view = gate_.map(b.first_page, b.pages);
  if (!b.view) return nullptr;
  low_ = low_ ? std::min(low_, base) : base;
  high_ = std::max(high_, base + size);
  mirrors_.watch_managed(low_, high_ - low_);
  block& added = blocks_[base] = b;
  if (!variable) return b.view;
  // Variables may share a page: all of them are closed, or none is.
  for (auto& [other_base, other] : blocks_) {
    if (!other.variable || other_base == base) continue;
    added.users = other.users;
    if (other.closed) close(added);
    break;
  }
  return b.view + (base - b.first_page);
}

void managed_blocks::remove(std::uint64_t base) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(base);
  if (found == blocks_.end()) return;
  const block gone = found->second;
  if (gone.closed) open(found->second);
  blocks_.erase(found);
  busy_.erase(base);
  gate_.unmap(gone.first_page, gone.pages, gone.view, !gone.variable);
}

void managed_blocks::close(block& b) {
  if (ended_.load(std::memory_order_relaxed) || !gate_.close(b.first_page, b.pages)) return;
  b.closed = true;
  b.closing = ++last_closing_;
  b.issued = false;
  b.windows.clear();
  b.next_window = first_window;
  mirrors_.shut(b.base);
}

/// What the program may change is compared again before it can.
void managed_blocks::open(block& b) {
  mirrors_.unshut(b.base);
  b.closed = false;
  b.touched.clear();
  b.windows.clear();
  b.seen.clear();
  gate_.reopen(b.first_page, b.pages);
}

void managed_blocks::use(block& b, const work_flow& flow, std::uint64_t number) {
  b.users[flow] = number;
  busy_.insert(b.base);
  b.lent = lending_;
  if (!b.closed && !b.lent) close(b);
}

managed_blocks::block* managed_blocks::at(std::uint64_t address) {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  block& b = std::prev(after)->second;
  return address - b.base < b.size ? &b : nullptr;
}

std::uint64_t managed_blocks::begin(const work_flow& flow, std::span<const std::byte> words, bool all) {
  const std::lock_guard lock(mutex_);
  if (blocks_.empty() || ended_.load(std::memory_order_relaxed)) return 0;
  seen_.clear();
  marshal::find_addresses(words, 1, {low_, high_ - low_, &seen_});
  const std::uint64_t number = ++last_number_;
  leaving_.insert(number);
  for (const std::uint64_t address : seen_) {
    if (block* b = at(address)) use(*b, flow, number);
  }
  for (auto& [base, b] : blocks_) {
    const bool concerned = b.attached == 0 || b.attached == flow.stream;
    if (all || (concerned && (b.variable || b.reachable))) use(b, flow, number);
  }
  return number;
}

bool managed_blocks::reach(const work_flow& flow, std::uint64_t number) {
  const std::vector<std::uint64_t> noted = mirrors_.take_managed_noted();
  if (noted.empty()) return false;
  const std::lock_guard lock(mutex_);
  bool more = false;
  for (const std::uint64_t address : noted) {
    block* b = at(address);
    if (!b || b->reachable) continue;
    b->reachable = true;
    const auto user = b->users.find(flow);
    const bool concerned = b->attached == 0 || b->attached == flow.stream;
    if (number == 0 || !concerned || (user != b->users.end() && user->second >= number)) continue;
    use(*b, flow, number);
    more = true;
  }
  return more;
}

void managed_blocks::uploaded(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (blocks_.empty()) return;
  seen_.clear();
  marshal::find_addresses(bytes, sizeof(std::uint64_t), {low_, high_ - low_, &seen_});
  for (const std::uint64_t address : seen_) {
    if (block* b = at(address)) b->reachable = true;
  }
}

void managed_blocks::left(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  leaving_.erase(number);
}

std::uint64_t managed_blocks::mark() const {
  const std::lock_guard lock(mutex_);
  return all_left();
}

std::uint64_t managed_blocks::all_left() const {
  return leaving_.empty() ? last_number_ : *leaving_.begin() - 1;
}

void managed_blocks::drop(const std::function<bool(const work_flow&)>& which, std::uint64_t mark) {
  for (auto base = busy_.begin(); base != busy_.end();) {
    block& b = blocks_.at(*base);
    std::erase_if(b.users, [&](const auto& user) { return user.second <= mark && which(user.first); });
    if (b.users.empty()) {
      b.lent = false;
      if (b.closed) open(b);
    }
    base = b.users.empty() ? busy_.erase(base) : std::next(base);
  }
}

void managed_blocks::complete(const work_flow& flow, std::uint64_t mark) {
  const std::lock_guard lock(mutex_);
  drop([&](const work_flow& f) { return f == flow; }, mark);
}

void managed_blocks::complete_context(std::uint64_t context, std::uint64_t mark) {
  const std::lock_guard lock(mutex_);
  drop([&](const work_flow& f) { return f.context == context; }, mark);
}

void managed_blocks::recorded(std::uint64_t event, const work_flow& flow) {
  const std::lock_guard lock(mutex_);
  events_[event] = {flow, all_left()};
}

void managed_blocks::complete_event(std::uint64_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  const auto flow = found->second.first;
  const auto mark = found->second.second;
  drop([&](const work_flow& f) { return f == flow; }, mark);
}

void managed_blocks::forget_event(std::uint64_t event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

void managed_blocks::attach(std::uint64_t base, std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  if (block* b = at(base)) b->attached = stream;
}

void managed_blocks::lend() {
  const std::lock_guard lock(mutex_);
  lending_ = true;
  for (const std::uint64_t base : busy_) {
    block& b = blocks_.at(base);
    b.lent = true;
    if (b.closed) open(b);
  }
}

void managed_blocks::take_back() {
  const std::lock_guard lock(mutex_);
  lending_ = false;
  for (const std::uint64_t base : busy_) {
    block& b = blocks_.at(base);
    if (std::exchange(b.lent, false)) close(b);
  }
}

void managed_blocks::stop() {
  if (!started()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_.store(true);
    for (const std::uint64_t base : busy_) {
      if (block& b = blocks_.at(base); b.closed) open(b);
    }
  }
  waits_changed_.notify_all();
  gate_.wake();
  // The library may be unloaded after this: its threads should not be in it then.
  for (int i = 0; i < 200 && threads_.load(std::memory_order_acquire) != 0; ++i) ::usleep(500);
}

}  // namespace outboard::frontend
