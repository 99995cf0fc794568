// Copies and fills across the border of two physical allocations that lie side by side at one range of
// addresses, from and to every place around the border, and the codes when the second allocation is missing.
#include <cuda.h>

#include <cstring>

#include "../common.hh"

namespace {

struct range {
  CUdeviceptr base = 0;
  std::size_t piece = 0;
  CUmemGenericAllocationHandle parts[2] = {};

  CUdeviceptr border() const { return base + piece; }
};

CUmemAllocationProp on_device() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return p;
}

/// Addresses for three pieces, of which the last is never mapped.
range two_pieces() {
  range r;
  const CUmemAllocationProp p = on_device();
  MUST(cuMemGetAllocationGranularity(&r.piece, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  MUST(cuMemAddressReserve(&r.base, 3 * r.piece, 0, 0, 0));
  for (int i = 0; i < 2; ++i) {
    MUST(cuMemCreate(&r.parts[i], r.piece, &p, 0));
    MUST(cuMemMap(r.base + i * r.piece, r.piece, 0, r.parts[i], 0));
  }
  CUmemAccessDesc access{};
  access.location = p.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemSetAccess(r.base, 2 * r.piece, &access, 1));
  return r;
}

void release(const range& r) {
  MUST(cuMemUnmap(r.base, 2 * r.piece));
  for (auto part : r.parts) MUST(cuMemRelease(part));
  MUST(cuMemAddressFree(r.base, 3 * r.piece));
}

void whole(const range& r, CUdeviceptr aside, CUstream stream) {
  const std::size_t size = 2 * r.piece;
  std::vector<unsigned char> in(size), out(size);
  numbers random;
  for (auto& byte : in) byte = static_cast<unsigned char>(random.next());
  MUST(cuMemcpyHtoD(r.base, in.data(), size));
  MUST(cuMemcpyDtoH(out.data(), r.base, size));
  EXPECT(in == out);
  for (std::size_t before : {std::size_t{1}, std::size_t{777}, r.piece / 2 + 3}) {
    for (std::size_t behind : {std::size_t{1}, std::size_t{4096}, r.piece - 5}) {
      const std::size_t count = before + behind;
      const CUdeviceptr at = r.border() - before;
      const unsigned char* expected = &in[r.piece - before];
      std::fill(out.begin(), out.end(), 0);
      MUST(cuMemcpyDtoD(aside + 9, at, count));
      MUST(cuMemcpyDtoH(out.data(), aside + 9, count));
      EXPECT(std::memcmp(out.data(), expected, count) == 0);
      std::fill(out.begin(), out.end(), 0);
      MUST(cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), at, count));  // the driver finds out the kind
      EXPECT(std::memcmp(out.data(), expected, count) == 0);
      std::fill(out.begin(), out.end(), 0);
      MUST(cuMemcpyDtoHAsync(out.data(), at, count, stream));
      MUST(cuStreamSynchronize(stream));
      EXPECT(std::memcmp(out.data(), expected, count) == 0);
      MUST(cuMemcpyHtoDAsync(at, expected, count, stream));
      MUST(cuMemcpyAsync(aside, at, count, stream));
      MUST(cuMemcpyDtoHAsync(out.data(), aside, count, stream));
      MUST(cuStreamSynchronize(stream));
      EXPECT(std::memcmp(out.data(), expected, count) == 0);
    }
  }
  MUST(cuMemsetD8(r.border() - 100, 0xee, 300));
  MUST(cuMemcpyDtoH(out.data(), r.base, size));
  for (std::size_t i = 0; i < size; ++i) {
    const bool filled = i >= r.piece - 100 && i < r.piece + 200;
    EXPECT(out[i] == (filled ? 0xee : in[i]));
  }
}

/// Rows whose pitch leads across the border.
void rows(const range& r) {
  constexpr std::size_t width = 100, pitch = 512, height = 16;
  std::vector<unsigned char> in(width * height), out(width * height);
  numbers random{7};
  for (auto& byte : in) byte = static_cast<unsigned char>(random.next());
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = in.data(), copy.srcPitch = width;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = r.border() - 8 * pitch - 50,
  copy.dstPitch = pitch;
  copy.WidthInBytes = width, copy.Height = height;
  MUST(cuMemcpy2D(&copy));
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE, back.srcDevice = copy.dstDevice, back.srcPitch = pitch;
  back.dstMemoryType = CU_MEMORYTYPE_HOST, back.dstHost = out.data(), back.dstPitch = width;
  back.WidthInBytes = width, back.Height = height;
  MUST(cuMemcpy2D(&back));
  EXPECT(in == out);
}

void beyond(const range& r) {
  std::vector<unsigned char> host(r.piece);
  const CUdeviceptr at = r.border() + r.piece / 2;
  EXPECT(cuMemcpyHtoD(at, host.data(), r.piece) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemcpyDtoH(host.data(), at, r.piece) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemsetD8(at, 0, r.piece) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr aside = 0;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const range r = two_pieces();
  MUST(cuMemAlloc(&aside, 2 * r.piece));
  whole(r, aside, stream);
  rows(r);
  beyond(r);
  MUST(cuMemFree(aside));
  release(r);
  MUST(cuStreamDestroy(stream));
  return pass("crossing_copies");
}
