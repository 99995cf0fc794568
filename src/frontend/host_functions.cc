#include "frontend/host_functions.hh"

#include <unistd.h>

#include <algorithm>

#include "base/blocked_signals.hh"
#include "frontend/lane.hh"

namespace outboard::frontend {
namespace {

/// What an answer may bring, below a frame; the server asks for no more.
constexpr std::size_t most_answered = 16u << 20;

}  // namespace

std::byte* host_box::place(std::uint64_t offset, std::uint64_t bytes) const {
  if (width == 0 || offset > size() || bytes > size() - offset) return nullptr;
  if (gapless()) return base + offset;
  const std::uint64_t row = offset / width;
  if (offset % width + bytes > width) return nullptr;
  return base + row / height * slice + row % height * pitch + offset % width;
}

bool host_box::gapless() const {
  return (height * depth == 1 || pitch == width) && (depth == 1 || slice == pitch * height);
}

std::span<const std::byte> host_box::extent() const {
  if (size() == 0) return {};
  const std::uint64_t bytes = gapless() ? size() : (depth - 1) * slice + (height - 1) * pitch + width;
  return {base, static_cast<std::size_t>(bytes)};
}

std::uint64_t host_functions::add(session& from, function run, std::pair<void*, void*> pointers) {
  return keep(from, {std::make_shared<const function>(std::move(run)), pointers, {}});
}

std::uint64_t host_functions::add(session& from, const host_box& box) {
  return keep(from, {nullptr, {}, box});
}

std::pair<void*, void*> host_functions::pointers(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::pair<void*, void*>{} : found->second.pointers;
}

std::optional<host_box> host_functions::box(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.box.base) return std::nullopt;
  return found->second.box;
}

bool host_functions::in_a_box(std::span<const std::byte> memory) const {
  if (boxes_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [&](const auto& one) {
    const std::span<const std::byte> its = one.second.box.extent();
    return !its.empty() && its.data() < memory.data() + memory.size() &&
           memory.data() < its.data() + its.size();
  });
}

std::uint64_t host_functions::keep(session& from, entry e) {
  const std::lock_guard lock(mutex_);
  if (!started_) {
    started_ = true;
    gone_.store(false, std::memory_order_relaxed);
    // Signals are the program's business (design section 5.4).
    const blocked_signals blocked;
    std::thread([this, &from] { work(from); }).detach();
  }
  if (e.box.base) boxes_.fetch_add(1, std::memory_order_relaxed);
  entries_[++last_] = std::move(e);
  return last_;
}

void host_functions::surround(std::function<void()> before, std::function<void()> after) {
  const std::lock_guard lock(mutex_);
  before_ = std::move(before);
  after_ = std::move(after);
}

void host_functions::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto gone = entries_.extract(id);
  if (!gone.empty() && gone.mapped().box.base) boxes_.fetch_sub(1, std::memory_order_relaxed);
}

/// As they are now, behind the function that ran.
std::vector<std::byte> host_functions::bytes_of(const std::vector<std::uint64_t>& boxes) const {
  std::vector<std::byte> bytes;
  for (const std::uint64_t id : boxes) {
    const auto found = box(id);
    if (!found || found->size() > most_answered - std::min(bytes.size(), most_answered)) continue;
    const std::uint64_t row = found->gapless() ? found->size() : found->width;
    for (std::uint64_t at = 0; at < found->size(); at += row) {
      const std::byte* from = found->place(at, row);
      bytes.insert(bytes.end(), from, from + row);
    }
  }
  return bytes;
}

void host_functions::run(const callback_order& order) {
  std::shared_ptr<const function> what;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(order.errand.id);
    if (found != entries_.end()) what = found->second.run;
  }
  if (!what) return;  // the server errs: nothing of ours runs by a number that we did not give out
  if (before_) before_();
  lane& own = this_lane();
  own.in_callback = true;
  in_program_.store(true, std::memory_order_release);
  (*what)(order.errand.status);
  in_program_.store(false, std::memory_order_release);
  own.in_callback = false;
  if (after_) after_();
}

void host_functions::work(session& from) {
  while (const auto order = from.next_callback()) {
    if (order->errand.what == marshal::errand::run) run(*order);
    const bool once = order->errand.what == marshal::errand::run && order->errand.last;
    if (once || order->errand.what == marshal::errand::forget) forget(order->errand.id);
    from.answer_callback(order->number, bytes_of(order->errand.wanted));
  }
  const std::lock_guard lock(mutex_);
  started_ = false;  // a session that goes on elsewhere gets a thread of its own
  gone_.store(true, std::memory_order_release);
}

void host_functions::end() {
  // The library may be unloaded after this: the thread should not be in it then. A function of the program
  // that does not return, or that ended the process itself, is not waited for.
  for (int i = 0; i < 200 && !gone_.load(std::memory_order_acquire); ++i) {
    if (in_program_.load(std::memory_order_acquire)) return;
    ::usleep(500);
  }
}

void host_functions::forked() { gone_.store(true, std::memory_order_relaxed); }

}  // namespace outboard::frontend
