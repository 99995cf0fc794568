// How busy the workers keep the cores: their CPU time, sampled from their clocks by a thread of its own while
// there are any. Owned by the cpu device's NVML; any thread asks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "device/nvml.hh"

namespace outboard::device::cpu {

class busy_meter {
 public:
  busy_meter(unsigned cores, activity_source workers);
  ~busy_meter();

  /// Of all cores over the last sample, 0 to 100.
  unsigned percent() const;

 private:
  void run();
  void sample();

  const double cores_;
  const activity_source workers_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  unsigned percent_ = 0;
  std::map<pid_t, double> seconds_;  ///< CPU time at the last sample; of the thread alone
  std::chrono::steady_clock::time_point when_{};
  std::thread thread_;
};

/// CPU seconds that a process has used, ended children not counted; 0 for one that is gone.
double cpu_seconds(pid_t process);

}  // namespace outboard::device::cpu
