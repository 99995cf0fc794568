// Ends kernels that run too long, and all of them when the device closes. Any thread; its own thread exists
// only when there is a limit.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "ptx/run/executor.hh"

namespace outboard::device::cpu {

class watchdog {
 public:
  explicit watchdog(std::chrono::milliseconds limit);
  ~watchdog();

  /// Cancels every running and every later kernel.
  void close();

  /// A running kernel, for as long as the object lives.
  class watch {
   public:
    explicit watch(watchdog& w);
    ~watch();
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;
    const ptx::cancel_token* token() const { return &token_; }

   private:
    friend class watchdog;
    watchdog& watchdog_;
    ptx::cancel_token token_;
    std::multimap<std::chrono::steady_clock::time_point, watch*>::iterator place_;
  };

 private:
  void work();

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false, stopping_ = false;
  std::multimap<std::chrono::steady_clock::time_point, watch*> running_;  // by the time they must end
  std::thread thread_;
};

}  // namespace outboard::device::cpu
