// The mock's record of calls: counters, planned failures, blocked functions, the log. Internal to the
// mock; one lock, any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <span>

#include "device/mock/mock.hh"

namespace outboard::device::mock {

class control {
 public:
  /// Counts the call, waits while it is blocked, and returns whether it should fail.
  CUresult begin(api::opcode code);
  void end(api::opcode code, std::string_view name, std::span<const std::uint64_t> arguments,
           CUresult result);

  std::uint64_t calls(api::opcode code) const;
  std::uint64_t all_calls() const;
  void fail(api::opcode code, CUresult result, std::uint64_t times);
  void block(api::opcode code, bool on);
  bool wait_blocked(api::opcode code, std::size_t count, std::chrono::milliseconds limit) const;
  void release_all();
  std::vector<call_record> log() const;
  void clear_log();

 private:
  struct plan {
    std::uint64_t calls = 0;
    CUresult failure = CUDA_SUCCESS;
    std::uint64_t failures = 0;
    bool blocked = false;
    std::size_t waiting = 0;
  };

  static constexpr std::size_t log_limit = 65536;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<api::opcode, plan> plans_;
  std::uint64_t all_calls_ = 0;
  std::deque<call_record> log_;
};

}  // namespace outboard::device::mock
