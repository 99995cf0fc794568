// The front-end's model of stream capture: which captures this process has opened. While none is open, what
// concerns capture is answered here. Any thread.
#pragma once

#include <cstddef>

#include "api/cuda/functions.hh"
#include "frontend/lane.hh"

namespace outboard::frontend::cuda {

/// One relaxed load. While true, calls that are unsafe during capture must wait for the server's word.
bool any_capture_open();

/// Asks the server whether a capture forbids what is unsafe; if so, that capture is lost.
CUresult capture_refusal();

/// Runs a hand-written end that a capture may forbid, though much of it is answered here.
template <api::opcode Op, class End>
CUresult unless_captured(End&& end) {
  constexpr const api::description& about = api::function<Op>::about;
  // Allocations in stream order become nodes themselves. The legacy stream's copies are refused beside a
  // captured stream that waits for it only: they say so themselves.
  if constexpr (about.unsafe && !about.itself && !api::copies(about.leaves)) {
    if (any_capture_open()) {
      if (const CUresult refused = capture_refusal(); refused != CUDA_SUCCESS) return refused;
    }
  }
  return end();
}

/// Asks the server while any capture is open: an event may have brought the stream into one.
bool stream_captures(lane& own, CUstream stream, bool per_thread);

/// What cannot be captured is not looked at on a stream that captures: the capture is lost, and this says so.
CUresult refuse_captured(lane& own, CUstream stream, bool per_thread);

/// A copy between the device and the program's memory as a node of the graph under capture: it reads or
/// writes that memory at each launch.
struct captured_copy {
  CUdeviceptr device = 0;
  void* host = nullptr;
  std::size_t size = 0;
  CUstream stream = nullptr;
  bool to_host = false, per_thread = false;
};
CUresult capture_copy(lane& own, const captured_copy& copy);

/// A copy within the program's memory on a stream that is not captured, beside a capture, which no wait for
/// the context may disturb: the stream runs it as a host function. Returns when it is done.
CUresult copy_beside_capture(lane& own, const CUDA_MEMCPY3D& copy, CUstream stream, bool per_thread);

/// The same for copies of every shape: between the program's memory and the device, or within the former.
CUresult capture_box(lane& own, const CUDA_MEMCPY3D& copy, CUstream stream, bool per_thread);

}  // namespace outboard::frontend::cuda
