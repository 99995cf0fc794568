// What the worker does for itself (staging blocks, looking whether a copy is done) must not end a capture
// that a thread of the client has open: for that time this thread's capture mode is the relaxed one. A lane's
// or our own thread.
#pragma once

#include "api/cuda/driver_table.hh"

namespace outboard::backend {

class relaxed_capture {
 public:
  explicit relaxed_capture(const api::driver_table& driver, bool wanted = true)
      : exchange_(wanted ? driver.cuThreadExchangeStreamCaptureMode : nullptr) {
    if (exchange_) exchange_(&mode_);
  }
  ~relaxed_capture() {
    if (exchange_) exchange_(&mode_);
  }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

 private:
  CUresult (*exchange_)(CUstreamCaptureMode*);
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace outboard::backend
