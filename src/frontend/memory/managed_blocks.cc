#include "frontend/memory/managed_blocks.hh"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/fd.hh"
#include "base/pages.hh"
#include "frontend/lane.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::frontend {
namespace {

/// A debugger reads no page that is closed.
bool is_traced() {
  constexpr std::string_view field = "\nTracerPid:\t";
  const unique_fd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> text{};
  const auto size = ::read(file.get(), text.data(), text.size());
  const std::string_view status(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  const auto at = status.find(field);
  return at != status.npos && !status.substr(at + field.size()).starts_with('0');
}

}  // namespace

std::byte* managed_blocks::add(std::uint64_t base, std::uint64_t size, std::uint64_t used, bool variable) {
  block b;
  b.base = base;
  b.size = size;
  b.used = used;
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
  stirred_.erase(base);
  gate_.unmap(gone.first_page, gone.pages, gone.view, !gone.variable);
}

void managed_blocks::close(block& b) {
  if (ended_.load(std::memory_order_relaxed) || !gate_.close(b.first_page, b.pages)) return;
  b.closed = true;
  b.lazy = may_be_lazy(b);
  b.closing = ++last_closing_;
  b.issued = false;
  forget_windows(b);
  mirrors_.shut(b.base, b.lazy);
}

/// The next one is small again.
void managed_blocks::forget_windows(block& b) {
  b.windows.clear();
  b.next_window = first_window;
  b.last_end = 0;
}

/// What the program has changed there is compared once more.
void managed_blocks::close_windows(block& b) {
  for (const byte_range& w : b.windows) (void)gate_.close(b.base + w.begin, w.end - w.begin);
  mirrors_.close_windows(b.base, b.lazy);
  b.closing = ++last_closing_;
  b.issued = false;
  forget_windows(b);
}

/// System calls must wait for the pages, as threads do. A small block costs less when it is fetched with what
/// the program is told; variables share pages.
bool managed_blocks::may_be_lazy(const block& b) {
  if (b.variable || b.used <= first_window || !gate_.holds_system_calls()) return false;
  constexpr std::chrono::milliseconds known_for{100};
  if (const auto now = clock::now(); now - traced_known_ >= known_for) {
    traced_ = is_traced();
    traced_known_ = now;
  }
  return !traced_;
}

/// All its work is complete, and what a wait brings is here.
void managed_blocks::rest(block& b) {
  b.lent = false;
  if (!b.closed) return;
  if (!b.lazy) return open(b);
  close_windows(b);  // they may have been fetched before the last work was complete
  if (b.touched.empty()) return;
  stirred_.insert(b.base);
  gate_.wake();
}

/// What the program may change is compared again before it can.
void managed_blocks::open(block& b) {
  mirrors_.unshut(b.base);
  b.closed = b.lazy = false;
  stirred_.erase(b.base);
  b.touched.clear();
  b.windows.clear();
  b.seen.clear();
  gate_.reopen(b.first_page, b.pages);
}

void managed_blocks::use(block& b, const work_flow& flow, std::uint64_t number) {
  if (idle(b)) {
    b.lazy = may_be_lazy(b);
    close_windows(b);
    stirred_.erase(b.base);
    b.since = b.looked = b.changed = clock::now();
    if (!b.touched.empty()) work_touched_.notify_all();
  }
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
  std::vector<std::uint64_t> named;
  marshal::find_addresses(words, 1, {low_, high_ - low_, &named});
  const std::uint64_t number = ++last_number_;
  leaving_.insert(number);
  for (const std::uint64_t address : named) {
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
  std::unique_lock lock(mutex_);
  if (blocks_.empty()) return;
  std::vector<std::uint64_t> named;
  const marshal::address_watch watch{low_, high_ - low_, &named};
  lock.unlock();  // the bytes may lie in a closed page
  marshal::find_addresses(bytes, sizeof(std::uint64_t), watch);
  if (named.empty()) return;
  lock.lock();
  for (const std::uint64_t address : named) {
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
    if (b.users.empty()) rest(b);
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
    if (b.closed && !b.lazy) open(b);
  }
  gate_.wake();  // somebody may sleep there already
}

void managed_blocks::take_back() {
  const std::lock_guard lock(mutex_);
  lending_ = false;
  for (const std::uint64_t base : busy_) {
    block& b = blocks_.at(base);
    if (std::exchange(b.lent, false)) b.closed ? close_windows(b) : close(b);
  }
  work_touched_.notify_all();
}

/// Each splits its block's mapping in three, and a process may have 65,530 mappings.
std::size_t managed_blocks::windows_allowed() const {
  constexpr std::size_t most = 64, most_mappings = 32768;
  const std::size_t each = most_mappings / (2 * blocks_.size() + 1);
  return each < 2 ? 0 : std::min(most, each);
}

void managed_blocks::stop() {
  if (!started()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_.store(true);
    for (auto& [base, b] : blocks_) {
      if (b.closed) open(b);
    }
  }
  waits_changed_.notify_all();
  work_touched_.notify_all();
  gate_.wake();
  // The library may be unloaded after this: its threads should not be in it then.
  for (int i = 0; i < 200 && threads_.load(std::memory_order_acquire) != 0; ++i) ::usleep(500);
}

}  // namespace outboard::frontend
