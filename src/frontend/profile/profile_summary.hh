// The table that a user reads first: which kernels and copies took how long, how much of the time the device
// had nothing to do, and how long the program waited for answers. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/cuda/work_record.hh"
#include "frontend/annotations.hh"
#include "frontend/lane.hh"

namespace outboard::frontend {

class profile_summary {
 public:
  /// Times in nanoseconds, begins on one clock.
  void add_work(const api::work_record& w, std::int64_t begin);
  void add_call(answered how, std::int64_t took);
  /// One of the program's own ranges, by its text and its domain.
  void add_range(const annotated& range);

  struct circumstances {
    std::int64_t took = 0;  ///< from the program's first call to its end
    std::uint64_t sent = 0, received = 0, dropped = 0;
  };
  /// Lines that fit on a terminal; the longest total first. `names`: of kernels, for people, by the records'
  /// numbers.
  std::string text(const circumstances& about, std::span<const std::string> names = {}) const;

 private:
  struct total {
    std::uint64_t count = 0, bytes = 0;
    std::int64_t all = 0, least = 0, most = 0;
  };
  struct interval {
    std::int64_t begin, end;
  };
  struct named_total {
    std::string name;
    total sum;
  };
  static void add(total& t, std::int64_t took);
  static void append(std::string& out, std::vector<named_total> order, const char* title, bool bytes);
  static void merge(std::vector<interval>& all);

  std::map<std::uint32_t, total> kernels_;
  std::map<std::pair<std::string, std::string>, total> ranges_;  // by domain and text
  std::map<std::tuple<api::work_kind, api::memory_side, api::memory_side>, total> moves_;
  std::map<std::uint32_t, std::vector<interval>> at_work_;  // by device
  struct calls {
    std::uint64_t count = 0;
    std::int64_t took = 0;
  };
  calls calls_[3];
};

}  // namespace outboard::frontend
