// Arrays of the mock. They store nothing: copies from them to the host give zeros. Copies of boxes between
// memory work. The handles of texture and surface objects count up.
#include <cstring>

#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

struct side {
  unsigned char* memory = nullptr;  // nullptr: an array
  std::size_t pitch = 0, slice = 0;
  bool given = true;  // false: each row must be in memory of the mock
};

template <class P>
side target(const P& p) {
  if (p.dstMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  void* base = p.dstMemoryType == CU_MEMORYTYPE_HOST ? p.dstHost : reinterpret_cast<void*>(p.dstDevice);
  const std::size_t slice = p.dstPitch * p.dstHeight;
  return {static_cast<unsigned char*>(base) + p.dstZ * slice + p.dstY * p.dstPitch + p.dstXInBytes,
          p.dstPitch, slice, p.dstMemoryType == CU_MEMORYTYPE_HOST};
}
template <class P>
side source(const P& p) {
  if (p.srcMemoryType == CU_MEMORYTYPE_ARRAY) return {};
  const void* base =
      p.srcMemoryType == CU_MEMORYTYPE_HOST ? p.srcHost : reinterpret_cast<const void*>(p.srcDevice);
  const std::size_t slice = p.srcPitch * p.srcHeight;
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(base));
  return {bytes + p.srcZ * slice + p.srcY * p.srcPitch + p.srcXInBytes, p.srcPitch, slice,
          p.srcMemoryType == CU_MEMORYTYPE_HOST};
}

bool is_there(const side& s, const unsigned char* row, std::size_t bytes) {
  return s.given || is_given(reinterpret_cast<CUdeviceptr>(row), bytes);
}

template <class P>
CUresult copy(const P* p) {
  const side to = target(*p), from = source(*p);
  for (std::size_t z = 0; to.memory && z < p->Depth; ++z) {
    for (std::size_t y = 0; y < p->Height; ++y) {
      unsigned char* row = to.memory + z * to.slice + y * to.pitch;
      if (!is_there(to, row, p->WidthInBytes)) return CUDA_ERROR_INVALID_VALUE;
      if (from.memory) {
        const unsigned char* read = from.memory + z * from.slice + y * from.pitch;
        if (!is_there(from, read, p->WidthInBytes)) return CUDA_ERROR_INVALID_VALUE;
        std::memmove(row, read, p->WidthInBytes);
      } else {
        std::memset(row, 0, p->WidthInBytes);
      }
    }
  }
  return CUDA_SUCCESS;
}

template <class P>
CUresult copy_async(const P* p, CUstream) {
  return copy(p);
}

CUresult from_array(void* to, CUarray, std::size_t, std::size_t bytes) {
  std::memset(to, 0, bytes);
  return CUDA_SUCCESS;
}
CUresult from_array_async(void* to, CUarray a, std::size_t offset, std::size_t bytes, CUstream) {
  return from_array(to, a, offset, bytes);
}

CUresult texture_create(CUtexObject* out, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*,
                        const CUDA_RESOURCE_VIEW_DESC*) {
  return *out = here().make_handle(), CUDA_SUCCESS;
}
CUresult surface_create(CUsurfObject* out, const CUDA_RESOURCE_DESC*) {
  return *out = here().make_handle(), CUDA_SUCCESS;
}

}  // namespace

void set_array_behaviours(api::driver_table& b) {
  b.cuMemcpy3D_v2 = b.cuMemcpy3D_v2_ptds = copy<CUDA_MEMCPY3D>;
  b.cuMemcpy3DAsync_v2 = b.cuMemcpy3DAsync_v2_ptsz = copy_async<CUDA_MEMCPY3D>;
  b.cuMemcpy3DPeer = b.cuMemcpy3DPeer_ptds = copy<CUDA_MEMCPY3D_PEER>;
  b.cuMemcpy3DPeerAsync = b.cuMemcpy3DPeerAsync_ptsz = copy_async<CUDA_MEMCPY3D_PEER>;
  b.cuMemcpyAtoH_v2 = b.cuMemcpyAtoH_v2_ptds = from_array;
  b.cuMemcpyAtoHAsync_v2 = b.cuMemcpyAtoHAsync_v2_ptsz = from_array_async;
  b.cuTexObjectCreate = texture_create;
  b.cuSurfObjectCreate = surface_create;
}

}  // namespace outboard::device::mock
