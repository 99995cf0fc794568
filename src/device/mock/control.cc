#include "device/mock/control.hh"

#include <atomic>

namespace outboard::device::mock {
namespace {

std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> last{0};
  static thread_local const std::uint64_t own = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

}  // namespace

CUresult control::begin(api::opcode code) {
  std::unique_lock lock(mutex_);
  plan& p = plans_[code];  // a map, so the reference stays valid while we wait
  ++p.calls;
  ++all_calls_;
  if (p.blocked) {
    ++p.waiting;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !p.blocked; });
    --p.waiting;
  }
  if (p.failures == 0) return CUDA_SUCCESS;
  --p.failures;
  return p.failure;
}

void control::end(api::opcode code, std::string_view name, std::span<const std::uint64_t> arguments,
                  CUresult result) {
  std::lock_guard lock(mutex_);
  if (log_.size() == log_limit) log_.pop_front();
  log_.push_back({code, name, {arguments.begin(), arguments.end()}, thread_number(), result});
}

std::uint64_t control::calls(api::opcode code) const {
  std::lock_guard lock(mutex_);
  const auto at = plans_.find(code);
  return at == plans_.end() ? 0 : at->second.calls;
}

std::uint64_t control::all_calls() const {
  std::lock_guard lock(mutex_);
  return all_calls_;
}

void control::fail(api::opcode code, CUresult result, std::uint64_t times) {
  std::lock_guard lock(mutex_);
  plan& p = plans_[code];
  p.failure = result;
  p.failures = result == CUDA_SUCCESS ? 0 : times;
}

void control::block(api::opcode code, bool on) {
  std::lock_guard lock(mutex_);
  plans_[code].blocked = on;
  changed_.notify_all();
}

bool control::wait_blocked(api::opcode code, std::size_t count, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] {
    const auto at = plans_.find(code);
    return count == 0 || (at != plans_.end() && at->second.waiting >= count);
  });
}

void control::release_all() {
  std::lock_guard lock(mutex_);
  for (auto& [code, p] : plans_) p.blocked = false;
  changed_.notify_all();
}

std::vector<call_record> control::log() const {
  std::lock_guard lock(mutex_);
  return {log_.begin(), log_.end()};
}

void control::clear_log() {
  std::lock_guard lock(mutex_);
  log_.clear();
}

}  // namespace outboard::device::mock
