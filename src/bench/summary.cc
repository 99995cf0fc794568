#include "bench/summary.hh"

#include <algorithm>

#include "bench/pacing.hh"

namespace outboard::bench {

std::optional<summary> summarize(std::vector<double> runs) {
  if (runs.empty()) return std::nullopt;
  const auto [lowest, highest] = std::ranges::minmax(runs);
  return summary{bench::median(runs), lowest, highest, std::move(runs)};
}

std::optional<double> ratio(const compared_row& r) {
  if (!r.ours || !r.native || r.ours->median <= 0 || r.native->median <= 0) return std::nullopt;
  return r.ours->median / r.native->median;
}

std::optional<double> speed(const compared_row& r) {
  const auto of = ratio(r);
  if (!of) return std::nullopt;
  return higher_is_better(r.what->in) ? *of : 1 / *of;
}

}  // namespace outboard::bench
