// The wait for all work of the current context that frees imply. A context with an open capture cannot be
// waited for: the wait fails and the capture is lost. Captures that forbid frees have been asked before (the
// front-end does, for every function that they may forbid); beside one that allows them, it is the streams
// which no capture has that are waited for, by events of our own: the program may destroy a stream meanwhile.
#pragma once

#include <vector>

#include "backend/cuda/ends.hh"

namespace outboard::backend {

class device_wait {
 public:
  /// With the session's turn: finds out what there is to wait for.
  explicit device_wait(call& c);
  ~device_wait();
  device_wait(const device_wait&) = delete;
  device_wait& operator=(const device_wait&) = delete;
  /// Without it.
  CUresult operator()() const;

 private:
  const api::driver_table& driver_;
  bool beside_capture_ = false;
  CUresult code_ = CUDA_SUCCESS;
  std::vector<CUevent> events_;  ///< then these
};

}  // namespace outboard::backend
