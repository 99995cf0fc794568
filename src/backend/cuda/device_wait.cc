#include "backend/cuda/device_wait.hh"

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {

device_wait::device_wait(call& c) : driver_(c.driver()) {
  if (!c.session.captures().any()) return;
  std::vector<CUstream> streams;
  const auto look_at = [&](CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // The legacy stream has no answer beside a capture of a stream that waits for it.
    if (call_driver(driver_.cuStreamIsCapturing, stream, &status) != CUDA_SUCCESS) return;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) {
      streams.push_back(stream);
    } else {
      beside_capture_ = true;
    }
  };
  for (const std::uint64_t id : c.objects().ids(api::handle_kind::stream)) {
    CUstream stream = nullptr;
    if (c.objects().resolve(id, stream) == CUDA_SUCCESS) look_at(stream);
  }
  if (!beside_capture_) return;
  look_at(CU_STREAM_LEGACY);
  for (CUstream stream : streams) {
    CUevent event = nullptr;
    code_ = call_driver(driver_.cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    if (code_ != CUDA_SUCCESS) return;
    events_.push_back(event);
    // A stream of another context takes no event of this one; what it does is not waited for.
    call_driver(driver_.cuEventRecord, event, stream);
  }
}

device_wait::~device_wait() {
  for (CUevent event : events_) call_driver(driver_.cuEventDestroy_v2, event);
}

CUresult device_wait::operator()() const {
  if (!beside_capture_) return driver_.cuCtxSynchronize();
  if (code_ != CUDA_SUCCESS) return code_;
  for (CUevent event : events_) {
    if (const CUresult code = call_driver(driver_.cuEventSynchronize, event); code != CUDA_SUCCESS)
      return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace outboard::backend
