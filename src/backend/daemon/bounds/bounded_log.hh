// The log's lines about what others can do as often as they like: connect and say nothing, ask for what they
// may not have, join a queue and leave it. Each source (guest_sources.hh; for known clients their identity)
// has a number of lines. The others are counted, and one line a second says how many were left out. Owned by
// the part of the daemon that logs them; its one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "backend/daemon/bounds/bucket.hh"
#include "backend/daemon/event_loop.hh"
#include "base/log.hh"

namespace outboard::backend {

/// A person reads 32 lines, and a test of an installation makes fewer. A flood of 5 s from one source makes
/// 32 + 5 * 4 lines and 5 with counts; one from many sources at most 256 + 5 * 32, and 5 * 5.
struct line_limits {
  double at_once = 32, per_second = 4;                  ///< of one source
  double at_once_of_all = 256, per_second_of_all = 32;  ///< of all sources together
  std::size_t sources = 256;                            ///< with a count of their own
  std::size_t named = 4;                                ///< in one report of what was left out
  std::chrono::milliseconds between_reports{1000};
};

class bounded_log {
 public:
  /// How many lines were left out since the last report.
  using report_left_out = std::function<void(std::uint64_t count, std::string_view source)>;

  /// `loop` outlives this object. `report`: nothing: into the log.
  explicit bounded_log(event_loop& loop, line_limits limits = {}, report_left_out report = nullptr);
  /// Reports what was left out.
  ~bounded_log();
  bounded_log(const bounded_log&) = delete;
  bounded_log& operator=(const bounded_log&) = delete;

  /// Whether a line about it may be written; else it is counted.
  bool may_write(const std::string& source);
  /// Writes the line, or counts it. Formats nothing in the second case.
  template <class... Parts>
  void info(const std::string& source, const Parts&... parts) {
    if (log::enabled(log::level::info) && may_write(source)) log::info(parts...);
  }

 private:
  struct account {
    bucket lines;
    std::uint64_t left_out = 0;
  };

  void report();
  void each_second();

  event_loop& loop_;
  line_limits limits_;
  report_left_out tell_;
  bucket all_;
  std::map<std::string, account> accounts_;
  event_loop::id timer_ = 0;
};

}  // namespace outboard::backend
