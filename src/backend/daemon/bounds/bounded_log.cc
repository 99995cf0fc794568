#include "backend/daemon/bounds/bounded_log.hh"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace outboard::backend {
namespace {

/// Stands for the sources that have no count of their own.
constexpr std::string_view others = "other addresses";

void log_left_out(std::uint64_t count, std::string_view source) {
  log::info(count, count == 1 ? " more line about " : " more lines about ", source,
            count == 1 ? " is left out" : " are left out");
}

}  // namespace

bounded_log::bounded_log(event_loop& loop, line_limits limits, report_left_out report)
    : loop_(loop),
      limits_(limits),
      tell_(report ? std::move(report) : report_left_out(log_left_out)),
      all_(limits.at_once_of_all, limits.per_second_of_all) {}

bounded_log::~bounded_log() {
  loop_.forget(timer_);
  report();
}

bool bounded_log::may_write(const std::string& source) {
  const auto now = event_loop::clock::now();
  auto at = accounts_.find(source);
  if (at == accounts_.end()) {
    const std::string name = accounts_.size() < limits_.sources ? source : std::string(others);
    at = accounts_.try_emplace(name, account{bucket(limits_.at_once, limits_.per_second), 0}).first;
  }
  // It also forgets the sources that have become quiet.
  if (timer_ == 0) timer_ = loop_.after(limits_.between_reports, [this] { each_second(); });
  if (at->second.lines.take(now) && all_.take(now)) return true;
  ++at->second.left_out;
  return false;
}

void bounded_log::report() {
  std::vector<std::pair<std::uint64_t, std::string_view>> counts;
  for (auto& [source, own] : accounts_) {
    if (const auto count = std::exchange(own.left_out, 0)) counts.emplace_back(count, source);
  }
  std::ranges::sort(counts, std::greater<>());
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i < limits_.named) {
      tell_(counts[i].first, counts[i].second);
    } else {
      rest += counts[i].first;
    }
  }
  if (rest != 0) tell_(rest, others);
}

void bounded_log::each_second() {
  report();
  const auto now = event_loop::clock::now();
  for (auto at = accounts_.begin(); at != accounts_.end();)
    at = at->second.lines.full(now) ? accounts_.erase(at) : std::next(at);
  timer_ = accounts_.empty() ? 0 : loop_.after(limits_.between_reports, [this] { each_second(); });
}

}  // namespace outboard::backend
