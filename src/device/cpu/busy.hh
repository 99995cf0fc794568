// Measures how busy the workers keep the cores. Its own thread samples their CPU time from /proc while there
// are workers. Owned by the cpu device's NVML; any thread may ask.
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

  /// The share of all cores that was used during the last sample, 0 to 100.
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

/// The CPU seconds that a process has used, without ended children; 0 if it has ended.
double cpu_seconds(pid_t process);

}  // namespace outboard::device::cpu
