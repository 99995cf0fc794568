// What the commands of a profiled program did, and when: OpenCL's own profiling of their events. NVIDIA's
// CUPTI sees nothing of OpenCL; here every platform tells. While it is on, queues are made with profiling and
// each command has an event, which is kept until somebody takes its record. Owned by its session; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/opencl/table.hh"
#include "backend/opencl/event_clock.hh"
#include "device/work_recorder.hh"

namespace outboard::backend::opencl {

class command_records final : public device::work_recorder {
 public:
  explicit command_records(const api::opencl::function_table& table) : table_(table) {}

  status start() override { return on_ = true, status(); }
  void stop() override { on_ = false; }
  /// A command that is not over has no record yet; with `all`, which nobody asks but at the end, it counts as
  /// lost: it may wait for the program.
  device::recorded_work take(bool all) override;
  std::uint64_t now() override;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Records name a device by how many came before it.
  void add(cl_device_id device);
  /// The queue is no more: another one may get its place in memory.
  void forget(cl_command_queue queue);

  /// A command is about to be given to the device: now; 0: nobody wants to know.
  std::uint64_t about_to_give() { return on() ? now() : 0; }
  /// It was given, and `done` is its event: `what` it does, its place in queue and time apart; `kernel`: the
  /// name, of a kernel. `since`: of about_to_give(); 0: nothing happens.
  void given(std::uint64_t since, cl_command_queue queue, cl_event done, api::work_record what,
             std::string_view kernel = {});

  /// Nobody takes any more.
  void drop();

 private:
  struct command {
    cl_event done = nullptr;  ///< ours to release
    api::work_record what;
    std::uint64_t before = 0, after = 0;  ///< it was given; of the steady clock
    std::uint64_t queued = 0;             ///< on the device's clock, once it is over
  };
  struct place {
    std::uint32_t device = 0, context = 0, stream = 0;
  };

  place place_of(cl_command_queue queue);
  std::uint32_t number_of(std::string_view kernel);
  std::vector<command> over(bool all);
  bool time(command& one);

  const api::opencl::function_table& table_;
  std::atomic<bool> on_{false};
  std::mutex taking_;                            // held by who takes, guards the clocks; before mutex_
  std::map<std::uint32_t, event_clock> clocks_;  // by device
  std::mutex mutex_;                             // guards what follows
  std::deque<command> under_way_;
  std::map<cl_device_id, std::uint32_t> devices_;
  std::map<cl_context, std::uint32_t> contexts_;
  std::map<cl_command_queue, place> queues_;
  std::uint32_t queues_seen_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::vector<std::string> untold_;  // names that nobody has taken
  std::uint64_t dropped_ = 0;
};

}  // namespace outboard::backend::opencl
