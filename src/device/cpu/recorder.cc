#include "device/cpu/recorder.hh"

#include <chrono>

#include "device/cpu/graph/running_node.hh"

namespace outboard::device::cpu {

status recorder::start() {
  on_.store(true, std::memory_order_release);
  return {};
}

std::uint64_t recorder::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(since).count());
}

void recorder::note(const api::work_record& done, std::string_view name) {
  done.kind == api::work_kind::kernel ? backlog_.note_kernel(done, name) : backlog_.note(done);
}

recorded_span::~recorded_span() {
  if (begin_ == 0) return;
  what.stream = running_stream();
  what.graph_node = running_node();
  what.request = request_under_way;
  what.begin = begin_;
  what.end = to_.now();
  to_.note(what, name);
}

std::uint32_t& running_stream() {
  thread_local std::uint32_t number = 0;
  return number;
}

std::uint64_t& running_node() {
  thread_local std::uint64_t node = 0;
  return node;
}

}  // namespace outboard::device::cpu
