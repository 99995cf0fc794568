#include "frontend/call_watch.hh"

#include "base/recent_numbers.hh"
#include "frontend/lane.hh"
#include "frontend/profile/profile.hh"

namespace outboard::frontend {
namespace {

/// Requests of the last moments: records of the device arrive a second later at most.
constexpr std::size_t remembered_requests = std::size_t{1} << 20;

std::atomic<std::uint32_t> last_call{0};
std::atomic<recent_numbers<std::uint32_t>*> requests{nullptr};  // made when first watched, never destroyed

}  // namespace

void watch_calls(call_watcher who, bool on) {
  const auto bit = static_cast<unsigned>(who);
  // A trace has no use for the requests' calls.
  if (on && who != call_watcher::trace && !requests.load()) {
    auto* const made = new recent_numbers<std::uint32_t>(remembered_requests);
    recent_numbers<std::uint32_t>* none = nullptr;
    if (!requests.compare_exchange_strong(none, made)) delete made;
  }
  if (on && who == call_watcher::tool && !calls_watched_by(who)) tool_watch.fetch_add(1);
  on ? call_watchers.fetch_or(bit) : call_watchers.fetch_and(~bit);
}

std::uint32_t runtime_call_of(const lane& own) {
  const bool holds = own.tool.runtime_watch == tool_watch.load(std::memory_order_relaxed);
  return holds && calls_watched_by(call_watcher::tool) ? own.tool.runtime_call : 0;
}

std::uint32_t next_call_number() {
  std::uint32_t number = 0;
  while (number == 0) number = last_call.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

void note_request(std::uint64_t ticket, std::uint32_t call) {
  if (auto* const known = requests.load(std::memory_order_acquire); known && call) known->note(ticket, call);
}

std::uint32_t call_of_request(std::uint64_t ticket) {
  auto* const known = requests.load(std::memory_order_acquire);
  return known ? known->find(ticket) : 0;
}

watched_call::watched_call(const tool_call& about)
    : own_(this_lane()), outermost_(own_.depth++ == 0), call_(about) {
  if (outermost_) {
    own_.how = answered::locally;
    const std::uint32_t of_runtime = runtime_call_of(own_);
    own_.call = of_runtime != 0 ? of_runtime : next_call_number();
    call_.number = own_.call;
    if (calls_watched_by(call_watcher::tool)) tool_ = tool.load();
    if (tool_) tool_->entered(own_, call_);
    if (profile::on()) profile::note_stream(call_.number, call_.stream);
  }
  call_.begin = std::chrono::steady_clock::now();
}

void watched_call::over(void* result) {
  call_.end = std::chrono::steady_clock::now();
  --own_.depth;
  if (!outermost_) return;
  call_.result = result;
  if (tool_) tool_->left(own_, call_);
  if (profile::on()) profile::note_call(own_, call_.name, call_.begin, call_.end);
  own_.call = 0;
}

}  // namespace outboard::frontend
