#include "bench/verdict.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "bench/pacing.hh"

namespace outboard::bench {
namespace {

constexpr double level_margin = 0.05;

struct judged_shape {
  shape of;
  const char* programs;  ///< "programs that ..."
};

constexpr std::array judged{judged_shape{shape::launching, "launch much and wait seldom"},
                            judged_shape{shape::waiting, "wait for each small step"},
                            judged_shape{shape::moving, "copy large blocks"},
                            judged_shape{shape::allocating, "allocate all the time"}};

struct judgement {
  double speed = 1;  ///< the rows' geometric mean
  double noise = 0;  ///< how far the runs of a typical row lie apart
};

std::optional<judgement> judge(std::span<const compared_row> rows, shape of) {
  double logarithms = 0;
  std::vector<double> noise;
  for (const compared_row& r : rows) {
    const auto fast = speed(r);
    if (r.what->of != of || !fast) continue;
    logarithms += std::log(*fast);
    noise.push_back(std::max(r.ours->spread(), r.native->spread()));
  }
  if (noise.empty()) return std::nullopt;
  return judgement{std::exp(logarithms / static_cast<double>(noise.size())), median(noise)};
}

const compared_row* find(std::span<const compared_row> rows, std::string_view name) {
  const auto found = std::ranges::find_if(rows, [&](const compared_row& r) { return r.what->name == name; });
  return found == rows.end() ? nullptr : &*found;
}

/// The median of the column that there is: ours, without one native.
std::optional<double> value_of(std::span<const compared_row> rows, std::string_view name) {
  const compared_row* r = find(rows, name);
  if (r == nullptr || (!r->ours && !r->native)) return std::nullopt;
  return r->ours ? r->ours->median : r->native->median;
}

/// The best of the rows that begin and are measured so.
std::optional<double> best_rate(std::span<const compared_row> rows, std::string_view begin) {
  std::optional<double> best;
  for (const compared_row& r : rows) {
    if (!r.what->name.starts_with(begin) || r.what->in != unit::gigabytes_per_second) continue;
    const auto value = value_of(rows, r.what->name);
    if (value) best = std::max(best.value_or(0), *value);
  }
  return best;
}

void add(std::string& list, const std::string& part, const char* between) {
  list.append(list.empty() ? "" : between).append(part);
}

std::string against_native(std::span<const compared_row> rows) {
  std::string ahead, level, behind, open;
  for (const auto& [of, programs] : judged) {
    const auto j = judge(rows, of);
    if (!j) continue;
    // As far from 1 below as above: 1/x of a speed is the other's.
    const double apart = std::max(j->speed, 1 / j->speed);
    std::string& list = apart <= 1 + level_margin ? level
                        : apart <= 1 + j->noise   ? open
                        : j->speed > 1            ? ahead
                                                  : behind;
    add(list, fmt::format("{} ({:.2f})", programs, j->speed), ", that ");
  }
  std::string out;
  if (!ahead.empty()) add(out, "ahead: programs that " + ahead, "; ");
  if (!level.empty()) add(out, "level: programs that " + level, "; ");
  if (!behind.empty()) add(out, "behind: programs that " + behind, "; ");
  if (!open.empty()) add(out, "not decided, the runs lie too far apart: programs that " + open, "; ");
  return out.empty() ? out : "Speed against native, where 1.00 is the same: " + out + ".";
}

/// The line's part of a wait. Nothing: it is not known, or no part (who waits may spin, a handshake does
/// not).
std::optional<double> line_of(std::span<const compared_row> rows, double wait) {
  const auto line = value_of(rows, line_row);
  return line && *line < wait ? line : std::nullopt;
}

std::string wait_on_top(std::span<const compared_row> rows) {
  const compared_row* r = find(rows, "launch_wait");
  if (r == nullptr || !r->ours || !r->native) return "";
  if (r->ours->lowest < r->native->highest && r->native->lowest < r->ours->highest)
    return "What a launch that is waited for costs on top cannot be told: its runs overlap.";
  const double more = r->ours->median - r->native->median;
  std::string out =
      more > 0 ? fmt::format("A launch that is waited for costs {:.1f} us more than natively", more)
               : fmt::format("A launch that is waited for costs {:.1f} us less than natively", -more);
  if (const auto line = line_of(rows, r->ours->median))
    out += fmt::format("; the line alone takes {:.1f} us", *line);
  return out + ".";
}

/// How often a program can wait, and what is left of its time.
std::string by_itself(std::span<const compared_row> rows) {
  std::string out;
  if (const auto wait = value_of(rows, "launch_wait")) {
    constexpr double second = 1e6, often = 1000;
    out = fmt::format("A launch that is waited for takes {:.1f} us", *wait);
    if (const auto line = line_of(rows, *wait)) out += fmt::format(" (the line alone: {:.1f})", *line);
    out +=
        *wait * often < second
            ? fmt::format(": a program that waits {:.0f} times a second spends {:.1f} % of its time in waits",
                          often, *wait * often / second * 100)
            : fmt::format(": no program can wait more than {:.0f} times a second", second / *wait);
    out += ".";
  }
  std::string most;
  if (const auto launches = value_of(rows, "launches"))
    add(most, fmt::format("{:.0f} thousand launches a second", *launches), ", ");
  if (const auto in = best_rate(rows, "in_")) add(most, fmt::format("{:.2f} GB/s in", *in), ", ");
  if (const auto out_rate = best_rate(rows, "out_"))
    add(most, fmt::format("{:.2f} GB/s out", *out_rate), ", ");
  if (!most.empty()) add(out, "What goes through at best: " + most + ".", " ");
  return out;
}

}  // namespace

std::string verdict(std::span<const compared_row> rows) {
  std::string out = against_native(rows);
  if (out.empty()) return by_itself(rows);
  const std::string wait = wait_on_top(rows);
  if (!wait.empty()) add(out, wait, " ");
  return out;
}

bool is_doubtful(const compared_row& r) {
  return (r.ours && r.ours->spread() > far_apart) || (r.native && r.native->spread() > far_apart);
}

std::vector<std::string> doubts(std::span<const compared_row> rows, std::span<const machine_load> machines) {
  std::vector<std::string> out;
  for (const machine_load& m : machines) {
    // A measurement wants two cores and a little for the system.
    const double most = std::max(0.5, m.cores / 4.0);
    if (m.runnable <= most) continue;
    out.push_back(
        fmt::format("{} was busy before the measurement began: {:.1f} programs wanted its {} cores (average "
                    "of a minute).",
                    m.who, m.runnable, m.cores));
  }
  const auto apart = std::ranges::count_if(rows, is_doubtful);
  if (apart > 0) {
    out.push_back(fmt::format(
        "The runs of {} of {} rows, marked with !, lie apart by more than {:.0f} % of their median.", apart,
        rows.size(), far_apart * 100));
  }
  return out;
}

}  // namespace outboard::bench
