// What is done here for the program's sake is none of its calls: a capture that it has open must not be
// disturbed. For the length of a scope; thread-bound.
#pragma once

#include "api/cuda/driver_table.hh"
#include "backend/cuda/driver_call.hh"

namespace outboard::backend {

class beside_captures {
 public:
  explicit beside_captures(const api::driver_table& driver) : driver_(driver) { exchange(); }
  ~beside_captures() { exchange(); }
  beside_captures(const beside_captures&) = delete;
  beside_captures& operator=(const beside_captures&) = delete;

 private:
  void exchange() { call_driver(driver_.cuThreadExchangeStreamCaptureMode, &mode_); }
  const api::driver_table& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace outboard::backend
