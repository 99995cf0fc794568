// What the worker's device has done for this program, on the program's clock and with the call that caused
// it: made from records as they are fetched. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cuda/work_record.hh"
#include "frontend/profile/profile_clock.hh"
#include "frontend/profile/profile_source.hh"

namespace outboard::frontend {

struct device_work {
  const api::work_record& what;
  std::string_view name;            ///< of a kernel, as the module has it; lasts as long as device_records
  std::int64_t begin = 0, end = 0;  ///< nanoseconds of std::chrono::steady_clock
  std::uint32_t call = 0;           ///< call_watch.hh's number; 0: not known
};

class device_records final : public profile_receiver {
 public:
  using taker = std::function<void(const device_work&)>;
  explicit device_records(taker take) : take_(std::move(take)) {}

  void begin_fetch() override { clock_.begin_look(); }
  void add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) override;
  /// Passes on the records that came: those between two comparisons of the clocks, once both are known.
  void end_fetch() override;

  /// Nobody took them in time, or the device lost them; since the worker began.
  std::uint64_t dropped() const { return dropped_; }

 private:
  const taker take_;
  profile_clock clock_;
  std::deque<std::string> names_;  // by number; a deque keeps them where they are
  std::vector<api::work_record> waiting_;
  std::uint64_t dropped_ = 0;
};

}  // namespace outboard::frontend
