#include "device/cpu/recorder.hh"

#include <algorithm>
#include <chrono>
#include <utility>

namespace outboard::device::cpu {
namespace {

/// Records that wait to be taken; more are dropped, and counted.
constexpr std::size_t most_waiting = 1u << 20;
/// Records of one take(): a reply that is not too long.
constexpr std::size_t most_taken = 32u << 10;

}  // namespace

status recorder::start() {
  on_.store(true, std::memory_order_release);
  return {};
}

recorded_work recorder::take(bool) {
  recorded_work out;
  const std::lock_guard lock(mutex_);
  const auto n = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), most_taken));
  out.records.assign(waiting_.begin(), waiting_.begin() + n);
  waiting_.erase(waiting_.begin(), waiting_.begin() + n);
  out.names = std::exchange(new_names_, {});
  out.dropped = dropped_;
  out.more = !waiting_.empty();
  return out;
}

std::uint64_t recorder::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count());
}

void recorder::note(api::work_record done, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() == most_waiting) return ++dropped_, void();
  if (done.kind == api::work_kind::kernel) {
    const auto next = static_cast<std::uint32_t>(names_.size());
    const auto [at, fresh] = names_.try_emplace(std::string(name), next);
    if (fresh) new_names_.push_back(at->first);
    done.name = at->second;
  }
  waiting_.push_back(done);
}

recorded_span::~recorded_span() {
  if (begin_ == 0) return;
  what.stream = running_stream();
  what.begin = begin_;
  what.end = to_.now();
  to_.note(what, name);
}

std::uint32_t& running_stream() {
  thread_local std::uint32_t number = 0;
  return number;
}

}  // namespace outboard::device::cpu
