// Chapter memory: cuMemcpy2D, cuMemcpy3D and their kin, in every version of their parameters.
#include "frontend/cuda/copying/boxes.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {
namespace {

using marshal::flavour;

// The structs of all versions name the same things alike; those of two dimensions lack some.
template <class P>
box_end to_of(const P& p) {
  box_end e;
  e.type = p.dstMemoryType, e.host = p.dstHost, e.device = p.dstDevice, e.array = p.dstArray;
  e.x = p.dstXInBytes, e.y = p.dstY, e.pitch = p.dstPitch;
  if constexpr (requires { p.dstZ; })
    e.z = p.dstZ, e.level = static_cast<unsigned>(p.dstLOD), e.rows = p.dstHeight;
  if constexpr (requires { p.dstContext; }) e.context = p.dstContext;
  return e;
}

template <class P>
box_end from_of(const P& p) {
  box_end e;
  e.type = p.srcMemoryType, e.host = const_cast<void*>(p.srcHost), e.device = p.srcDevice;
  e.array = p.srcArray, e.x = p.srcXInBytes, e.y = p.srcY, e.pitch = p.srcPitch;
  if constexpr (requires { p.srcZ; })
    e.z = p.srcZ, e.level = static_cast<unsigned>(p.srcLOD), e.rows = p.srcHeight;
  if constexpr (requires { p.srcContext; }) e.context = p.srcContext;
  return e;
}

template <class P>
CUresult copy(const P* p, CUstream stream, flavour how) {
  if (!p) {
    const CUresult code = process::instance().gate(this_lane());
    return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
  }
  box b;
  b.to = to_of(*p), b.from = from_of(*p);
  b.width = p->WidthInBytes, b.height = p->Height;
  if constexpr (requires { p->Depth; }) b.depth = p->Depth;
  if constexpr (requires { p->srcContext; }) {
    // Of one context the plain copy says the same and may be posted.
    b.peer = b.to.context != b.from.context || value_of(b.to.context) != this_lane().context_handle();
  }
  return copy_box(b, stream, how);
}

}  // namespace

namespace ends {

#define OUTBOARD_COPY(symbol, type, how) \
  CUresult symbol(const type* pCopy) { return copy(pCopy, nullptr, flavour::how); }
#define OUTBOARD_COPY_ASYNC(symbol, type, how) \
  CUresult symbol(const type* pCopy, CUstream hStream) { return copy(pCopy, hStream, flavour::how); }

OUTBOARD_COPY(cuMemcpy2D, CUDA_MEMCPY2D_v1, sync)
OUTBOARD_COPY(cuMemcpy2D_v2, CUDA_MEMCPY2D, sync)
OUTBOARD_COPY(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, sync_per_thread)
OUTBOARD_COPY(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, sync)
OUTBOARD_COPY(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, sync)
OUTBOARD_COPY(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, sync_per_thread)
OUTBOARD_COPY(cuMemcpy3D, CUDA_MEMCPY3D_v1, sync)
OUTBOARD_COPY(cuMemcpy3D_v2, CUDA_MEMCPY3D, sync)
OUTBOARD_COPY(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, sync_per_thread)
OUTBOARD_COPY(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, sync)
OUTBOARD_COPY(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, sync_per_thread)
OUTBOARD_COPY_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, stream)
OUTBOARD_COPY_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, stream)
OUTBOARD_COPY_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, stream_per_thread)
OUTBOARD_COPY_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, stream)
OUTBOARD_COPY_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, stream)
OUTBOARD_COPY_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, stream_per_thread)
OUTBOARD_COPY_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, stream)
OUTBOARD_COPY_ASYNC(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, stream_per_thread)

#undef OUTBOARD_COPY
#undef OUTBOARD_COPY_ASYNC

}  // namespace ends
}  // namespace outboard::frontend::cuda
