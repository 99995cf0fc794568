// Notes what the cpu device does for a profiler: kernels, copies, fills, each with its stream and times. Off,
// it costs a load for each of them. Owned by the machine; any thread.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "device/work_backlog.hh"
#include "device/work_recorder.hh"

namespace outboard::device::cpu {

class recorder final : public work_recorder {
 public:
  status start() override;
  void stop() override { on_.store(false, std::memory_order_release); }
  recorded_work take(bool) override { return backlog_.take(); }
  std::uint64_t now() override;

  bool on() const { return on_.load(std::memory_order_acquire); }
  /// `name`: of a kernel.
  void note(const api::work_record& done, std::string_view name = {});

 private:
  std::atomic<bool> on_{false};
  work_backlog backlog_;
};

/// One piece of work, from the making of this to its end: what it was is said in between.
class recorded_span {
 public:
  explicit recorded_span(recorder& to) : to_(to), begin_(to.on() ? to.now() : 0) {}
  ~recorded_span();
  recorded_span(const recorded_span&) = delete;
  recorded_span& operator=(const recorded_span&) = delete;

  bool on() const { return begin_ != 0; }
  api::work_record what;
  std::string name;

 private:
  recorder& to_;
  const std::uint64_t begin_;
};

/// The stream whose operation this thread runs; 0: none. The scheduler sets it.
std::uint32_t& running_stream();

}  // namespace outboard::device::cpu
