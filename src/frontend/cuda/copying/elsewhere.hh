// Copies of memory that lies elsewhere: on another device than the current one. A driver knows by itself to
// which device an address of cuMemAlloc belongs. The window's blocks are mapped for their own device alone,
// so such a copy is carried out where the memory lies, in the order of the stream that was named.
// Thread-bound to the lane.
#pragma once

#include <functional>
#include <optional>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/contexts.hh"

namespace outboard::frontend::cuda {

/// Device memory of any kind that belongs to another device than the current context.
bool of_another_device(const lane& own, std::uint64_t address);

/// The context of the block of cuMemAlloc at `address` where that is another device's, else nullptr.
context_state* owner_elsewhere(const lane& own, std::uint64_t address);

/// Whether a copy of this kind may run in another context. During a capture copies that wait must not: the
/// server says why.
inline bool may_go_elsewhere(marshal::flavour how) { return marshal::on_stream(how) || !any_capture_open(); }

/// Runs `copy` with `there` current, on a stream of that context that it is given: behind what `stream` has
/// and before what comes there next. The synchronous kinds get the default stream of `there`; natively they
/// also come behind its work.
CUresult over_there(lane& own, context_state& there, CUstream stream, marshal::flavour how,
                    const std::function<CUresult(CUstream)>& copy);

/// Copies within device memory if an end lies on another device; nothing: both ends are here.
std::optional<CUresult> copy_elsewhere(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream,
                                       marshal::flavour how);

}  // namespace outboard::frontend::cuda
