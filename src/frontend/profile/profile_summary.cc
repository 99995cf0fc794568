#include "frontend/profile/profile_summary.hh"

#include <algorithm>
#include <cinttypes>

#include "base/append_format.hh"
#include "frontend/profile/profile_events.hh"

namespace outboard::frontend {
namespace {

/// Intervals are merged when so many have come together.
constexpr std::size_t merged_at = 1u << 16;
/// Lines of one table; what follows is one line more.
constexpr std::size_t most_lines = 20, most_name = 70;
/// Programs that put numbers into the texts of their ranges have any number of them.
constexpr std::size_t most_ranges = 10'000;

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string shortened(const std::string& name) {
  return name.size() <= most_name ? name : name.substr(0, most_name - 3) + "...";
}

}  // namespace

void profile_summary::add(total& t, std::int64_t took) {
  t.least = t.count == 0 ? took : std::min(t.least, took);
  t.most = std::max(t.most, took);
  t.all += took;
  ++t.count;
}

void profile_summary::add_work(const api::work_record& w, std::int64_t begin) {
  const auto took = static_cast<std::int64_t>(w.end - w.begin);
  total& t = w.kind == api::work_kind::kernel ? kernels_[w.name] : moves_[{w.kind, w.from, w.to}];
  add(t, took);
  t.bytes += w.bytes;
  std::vector<interval>& busy = at_work_[w.device];
  busy.push_back({begin, begin + took});
  if (busy.size() % merged_at == 0) merge(busy);
}

void profile_summary::add_call(answered how, std::int64_t took) {
  calls& c = calls_[static_cast<std::size_t>(how)];
  ++c.count;
  c.took += took;
}

void profile_summary::add_range(const annotated& range) {
  std::pair<std::string, std::string> key{range.what.domain->name(), range.what.text};
  const auto found = ranges_.find(key);
  if (found == ranges_.end() && ranges_.size() >= most_ranges) key = {"", "(ranges of other texts)"};
  add(ranges_[std::move(key)], range.end - range.begin);
}

/// In order, and apart from each other.
void profile_summary::merge(std::vector<interval>& all) {
  std::ranges::sort(all, {}, &interval::begin);
  std::size_t last = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].begin <= all[last].end) {
      all[last].end = std::max(all[last].end, all[i].end);
    } else {
      all[++last] = all[i];
    }
  }
  if (!all.empty()) all.resize(last + 1);
}

void profile_summary::append(std::string& out, std::vector<named_total> order, const char* title,
                             bool bytes) {
  if (order.empty()) return;
  std::int64_t all = 0;
  for (const named_total& one : order) all += one.sum.all;
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.sum.all > b.sum.all; });
  append_format(out, "\n%5s %11s %9s %10s %10s %10s %8s  %s\n", "%", "total ms", "count", "mean us",
                "least us", "most us", bytes ? "GB/s" : "", title);
  std::int64_t rest = 0;
  std::uint64_t rest_count = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const total& t = order[i].sum;
    if (i >= most_lines) {
      rest += t.all, rest_count += t.count;
      continue;
    }
    append_format(out, "%5.1f %11.3f %9" PRIu64 " %10.2f %10.2f %10.2f ",
                  all ? 100.0 * static_cast<double>(t.all) / static_cast<double>(all) : 0,
                  milliseconds(t.all), t.count, microseconds(t.all) / static_cast<double>(t.count),
                  microseconds(t.least), microseconds(t.most));
    if (bytes) {
      append_format(out, "%8.2f  ", t.all ? static_cast<double>(t.bytes) / static_cast<double>(t.all) : 0);
    } else {
      append_format(out, "%8s  ", "");
    }
    out.append(shortened(order[i].name)).append("\n");
  }
  if (rest_count)
    append_format(out, "%5s %11.3f %9" PRIu64 "  in %zu more\n", "", milliseconds(rest), rest_count,
                  order.size() - most_lines);
}

std::string profile_summary::text(const circumstances& about, std::span<const std::string> names) const {
  std::string out;
  append_format(out, "outboard profile: %.3f s from the first call to the end\n",
                static_cast<double>(about.took) / 1e9);
  for (auto [device, intervals] : at_work_) {
    merge(intervals);
    std::int64_t busy = 0;
    for (const interval& i : intervals) busy += i.end - i.begin;
    append_format(out, "device %u: at work for %.3f ms, %.1f %% of it; idle between for %.3f ms\n", device,
                  milliseconds(busy),
                  about.took > 0 ? 100.0 * static_cast<double>(busy) / static_cast<double>(about.took) : 0,
                  milliseconds(intervals.back().end - intervals.front().begin - busy));
  }
  if (at_work_.empty()) out += "no kernel and no copy was recorded\n";
  const calls &local = calls_[0], &posted = calls_[1], &waited = calls_[2];
  append_format(out,
                "calls: %" PRIu64 " answered here, %" PRIu64 " sent without waiting, %" PRIu64
                " waited for: %.3f ms\n",
                local.count, posted.count, waited.count, milliseconds(waited.took));
  append_format(out, "line: %.3f MB sent, %.3f MB received\n", static_cast<double>(about.sent) / 1e6,
                static_cast<double>(about.received) / 1e6);
  if (about.dropped)
    append_format(out, "%" PRIu64 " records were lost: the table is not complete\n", about.dropped);
  std::vector<named_total> kernels, moves, ranges;
  for (const auto& [number, sum] : kernels_)
    kernels.push_back({number < names.size() ? names[number] : "unknown kernel", sum});
  for (const auto& [sides, sum] : moves_) {
    const auto [kind, from, to] = sides;
    moves.push_back({profile_events::name_of({.kind = kind, .from = from, .to = to}), sum});
  }
  for (const auto& [key, sum] : ranges_)
    ranges.push_back({key.first.empty() ? key.second : key.first + ": " + key.second, sum});
  append(out, std::move(kernels), "kernel", false);
  append(out, std::move(moves), "copy or fill", true);
  append(out, std::move(ranges), "range of the program (NVTX)", false);
  return out;
}

}  // namespace outboard::frontend
