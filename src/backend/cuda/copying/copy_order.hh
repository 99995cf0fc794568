// What the handlers of copies share: which stream's order a copy takes, and when it counts as done.
#pragma once

#include "backend/cuda/call.hh"
#include "backend/cuda/copying/staging.hh"

namespace outboard::backend {

inline bool known(marshal::flavour how) { return how < marshal::flavour::count; }

/// The stream whose order the copy takes: cuMemcpy's own is the legacy (or per-thread) default stream.
inline CUstream stream_of(marshal::flavour how, CUstream asked) {
  return marshal::on_stream(how) ? asked : nullptr;
}

/// Copies of the synchronous kind are complete for the program when they return, whatever stream it uses
/// next: streams that do not synchronise with the default stream must see them. So the next request waits for
/// the last of them.
inline CUresult finish_if_synchronous(call& c, marshal::flavour how, CUstream stream) {
  if (marshal::on_stream(how)) return CUDA_SUCCESS;
  auto* sync =
      marshal::per_thread(how) ? c.driver().cuStreamSynchronize_ptsz : c.driver().cuStreamSynchronize;
  return sync(stream);
}

/// Enqueues the copy of `size` bytes of the block to the device; the block goes back when that is done, or at
/// once if it fails.
CUresult copy_out_of(call& c, const staging::block& block, std::size_t size, CUdeviceptr to,
                     marshal::flavour how, CUstream stream);

}  // namespace outboard::backend
