// Copies in a stream of another context than the current one, as drivers allow it: libraries that use several
// devices name a stream and leave the current device as it is. Two contexts of one device tell the same, and
// where there are two devices, each has one.
#include <cuda.h>

#include <cstring>

#include "common.hh"

__global__ void slowly(unsigned* out, int rounds) {
  unsigned x = 1;
  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  if (x == 0) *out = x;
}

__global__ void set(unsigned* out, unsigned value) { *out = value; }

namespace {

constexpr int words = 1024, bytes = words * 4, rows = 16, row = bytes / rows;

struct context {
  CUcontext self = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr a = 0, b = 0;

  explicit context(CUdevice device) {
    MUST(cuCtxCreate(&self, nullptr, 0, device));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&a, bytes));
    MUST(cuMemAlloc(&b, bytes));
  }
  void wait() const { MUST(cuStreamSynchronize(stream)); }
};

std::vector<unsigned> filled(unsigned value) { return std::vector<unsigned>(words, value); }

CUDA_MEMCPY2D box(CUdeviceptr device, void* host, bool to_host) {
  CUDA_MEMCPY2D m{};
  m.srcMemoryType = to_host ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  m.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  m.srcDevice = m.dstDevice = device;
  m.srcHost = m.dstHost = host;
  m.srcPitch = m.dstPitch = m.WidthInBytes = row;
  m.Height = rows;
  return m;
}

/// Each shape, to the device and back, with nothing else under way.
void every_shape(const context& other, unsigned* pinned) {
  std::vector<unsigned> out = filled(1), in(words);
  MUST(cuMemcpyHtoDAsync(other.a, out.data(), bytes, other.stream));
  MUST(cuMemcpyDtoHAsync(in.data(), other.a, bytes, other.stream));
  other.wait();
  EXPECT(in == out);
  std::memcpy(pinned, filled(2).data(), bytes);
  MUST(cuMemcpyAsync(other.a, reinterpret_cast<CUdeviceptr>(pinned), bytes, other.stream));
  MUST(cuMemcpyDtoDAsync(other.b, other.a, bytes, other.stream));
  other.wait();
  std::memset(pinned, 0, bytes);
  MUST(cuMemcpyDtoHAsync(pinned, other.b, bytes, other.stream));
  other.wait();
  EXPECT(std::vector<unsigned>(pinned, pinned + words) == filled(2));
  out = filled(3);
  CUDA_MEMCPY2D there = box(other.a, out.data(), false), back = box(other.a, in.data(), true);
  MUST(cuMemcpy2DAsync(&there, other.stream));
  MUST(cuMemcpy2DAsync(&back, other.stream));
  other.wait();
  EXPECT(in == out);
  back = box(other.b, pinned, true);
  MUST(cuMemsetD32Async(other.b, 4, words, other.stream));
  MUST(cuMemcpy2DAsync(&back, other.stream));
  other.wait();
  EXPECT(std::vector<unsigned>(pinned, pinned + words) == filled(4));
}

/// Bytes that wait for a busy stream are the copy's own: what is copied next must not take their place.
void behind_slow_work(const context& other) {
  MUST(cuCtxPushCurrent(other.self));
  for (int i = 0; i < 2; ++i)
    slowly<<<1, 1, 0, other.stream>>>(reinterpret_cast<unsigned*>(other.a), 1 << 16);
  MUST(cudaGetLastError());
  MUST(cuCtxPopCurrent(nullptr));
  MUST(cuMemcpyHtoDAsync(other.a, filled(5).data(), bytes, other.stream));
  MUST(cuMemcpyHtoDAsync(other.b, filled(6).data(), bytes, other.stream));
  std::vector<unsigned> a(words), b(words);
  MUST(cuMemcpyDtoHAsync(a.data(), other.a, bytes, other.stream));
  MUST(cuMemcpyDtoHAsync(b.data(), other.b, bytes, other.stream));
  other.wait();
  EXPECT(a == filled(5) && b == filled(6));
}

/// A free of another context's memory says nothing of what the current one has at work.
void freed_elsewhere(const context& current, const context& other) {
  for (const bool managed : {true, false}) {
    CUdeviceptr theirs = 0, device = 0;
    MUST(cuCtxSetCurrent(other.self));
    MUST(cuMemAlloc(&theirs, 4 << 20));
    MUST(cuCtxSetCurrent(current.self));
    void* host = nullptr;
    if (managed) {
      MUST(cuMemAllocManaged(&device, bytes, CU_MEM_ATTACH_GLOBAL));
      host = reinterpret_cast<void*>(device);
    } else {
      MUST(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
      MUST(cuMemHostGetDevicePointer(&device, host, 0));
    }
    auto* const word = static_cast<volatile unsigned*>(host);
    *word = 1;
    slowly<<<1, 1, 0, current.stream>>>(reinterpret_cast<unsigned*>(current.a), 1 << 20);
    set<<<1, 1, 0, current.stream>>>(reinterpret_cast<unsigned*>(device), 7);
    MUST(cudaGetLastError());
    MUST(cuMemFree(theirs));
    current.wait();
    EXPECT(*word == 7);
    MUST(managed ? cuMemFree(device) : cuMemFreeHost(host));
  }
}

}  // namespace

int main() {
  int devices = 0;
  MUST(cuInit(0));
  MUST(cuDeviceGetCount(&devices));
  for (int second = 0; second < devices && second < 2; ++second) {
    const context own(0), other(second);
    unsigned* pinned = nullptr;
    MUST(cuMemAllocHost(reinterpret_cast<void**>(&pinned), bytes));
    for (const context* current : {&own, &other}) {
      const context& foreign = current == &own ? other : own;
      MUST(cuCtxSetCurrent(current->self));
      every_shape(foreign, pinned);
      behind_slow_work(foreign);
      freed_elsewhere(*current, foreign);
      CUcontext now = nullptr;
      MUST(cuCtxGetCurrent(&now));
      EXPECT(now == current->self);
    }
    MUST(cuMemFreeHost(pinned));
    MUST(cuCtxDestroy(own.self));
    MUST(cuCtxDestroy(other.self));
  }
  return pass("foreign_streams");
}
