// What a device did, and when: the records that profilers show. A device that can tell has one recorder,
// which is off until somebody asks; off, it costs a load of a flag for each kernel or copy, or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/cuda/board_sample.hh"
#include "api/cuda/work_record.hh"
#include "base/result.hh"

namespace outboard::device {

/// The request that this thread carries out: its work's records name it. 0: none. The back-end sets it before
/// it calls the device; threads that help it have none.
inline constinit thread_local std::uint64_t request_under_way = 0;

/// What a recorder hands out at a time.
struct recorded_work {
  std::vector<std::string> names;  ///< that are new: records count them from the recorder's first on
  std::vector<api::work_record> records;
  std::uint64_t dropped = 0;  ///< of all since the start: nobody took them in time, or the device lost them
  bool more = false;          ///< take() again
};

/// What sensors said since it was last asked for.
struct sampled_boards {
  std::vector<api::board_sample> samples;
  std::uint64_t dropped = 0;
};

/// Owned by its device. Any thread.
class work_recorder {
 public:
  virtual ~work_recorder() = default;

  /// As far as can be told without loading anything, could it be started? An error says in one line why not.
  virtual status look() { return {}; }
  /// Records from now on, also work of modules that were loaded before. Begun twice is begun once. An error
  /// says in one line why this device cannot tell.
  virtual status start() = 0;
  /// Records nothing more until it is started again; what is there can still be taken.
  virtual void stop() = 0;
  /// What is complete and has not been taken. `all`: also what the device still keeps to itself, which may
  /// hold it up.
  virtual recorded_work take(bool all) = 0;
  /// Samples the sensors of the devices from now on, or no more, whether work is recorded or not. Begun twice
  /// is begun once. An error says in one line why this device has nothing to sample.
  virtual status sample(bool on) {
    return on ? status(failure("the server's device has no sensors of speed, temperature, power or cooling"))
              : status();
  }
  virtual sampled_boards take_samples() { return {}; }
  /// Now, on the clock of the records, in nanoseconds.
  virtual std::uint64_t now() = 0;
};

}  // namespace outboard::device
