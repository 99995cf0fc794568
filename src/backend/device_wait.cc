#include "backend/device_wait.hh"

#include "backend/driver_call.hh"
#include "backend/session_core.hh"

namespace outboard::backend {

device_wait::device_wait(call& c) : driver_(c.driver()) {
  const auto look_at = [&](CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // The legacy stream has no answer beside a capture of a stream that waits for it.
    if (call_driver(driver_.cuStreamIsCapturing, stream, &status) != CUDA_SUCCESS) return;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) {
      streams_.push_back(stream);
    } else {
      beside_capture_ = true;
    }
  };
  for (const std::uint64_t id : c.objects().ids(api::handle_kind::stream)) {
    CUstream stream = nullptr;
    if (c.objects().resolve(id, stream) == CUDA_SUCCESS) look_at(stream);
  }
  look_at(CU_STREAM_LEGACY);
}

CUresult device_wait::operator()() const {
  if (!beside_capture_) return driver_.cuCtxSynchronize();
  for (CUstream stream : streams_) {
    if (const CUresult code = call_driver(driver_.cuStreamSynchronize, stream); code != CUDA_SUCCESS)
      return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace outboard::backend
