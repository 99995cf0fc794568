// Several runs of each row, natively and through Outboard: medians, how far the runs lie apart, ratios.
// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/rows.hh"

namespace outboard::bench {

struct summary {
  double median = 0, lowest = 0, highest = 0;
  std::vector<double> runs;  ///< in the order in which they were made

  /// How far the runs lie apart, as a part of their median.
  double spread() const { return median > 0 ? (highest - lowest) / median : 0; }
};

/// Nothing: there was no run.
std::optional<summary> summarize(std::vector<double> runs);

struct compared_row {
  const row* what = nullptr;
  std::optional<summary> ours = {}, native = {};
  std::string why_not_ours = {}, why_not_native = {};  ///< where there is none: the reason, if one is known
};

/// Of times and rates alike: 2 is twice as fast as native. Nothing: one of the two is missing.
std::optional<double> speed(const compared_row& r);

/// Ours / native, as it is: of a time less is better.
std::optional<double> ratio(const compared_row& r);

}  // namespace outboard::bench
