#include "backend/cuda/work_in_streams.hh"

#include "api/cuda/functions.hh"

namespace outboard::backend {

bool leaves_no_work(std::uint32_t opcode) {
  using enum api::opcode;
  switch (static_cast<api::opcode>(opcode)) {
    case cuCtxSynchronize:
    case cuStreamCreate:
    case cuStreamCreateWithPriority:
    case cuStreamQuery:
    case cuStreamQuery_ptsz:
    case cuStreamSynchronize:
    case cuStreamSynchronize_ptsz:
    case cuEventCreate:
    case cuEventDestroy_v2:
    case cuEventElapsedTime:
    case cuEventElapsedTime_v2:
    case cuEventQuery:
    case cuEventSynchronize:
    case cuFuncGetAttribute:
    case cuFuncSetAttribute:
    case cuKernelGetFunction:
    case cuModuleGetFunction:
    case cuMemAlloc_v2:
    case cuMemFree_v2:
    case cuMemGetInfo_v2:
      return true;
    default:
      return false;
  }
}

}  // namespace outboard::backend
