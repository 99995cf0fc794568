// Ends a context in each way in which it can end: its memory returns to the device and its addresses become
// invalid, while another context's memory stays.
#include <cuda.h>

#include <cstring>

#include "common.hh"

namespace {

constexpr std::size_t megabyte = 1 << 20, large = 32 * megabyte;
/// Bytes that a driver may keep of a context, or may take for another reason at the same time.
constexpr std::size_t slack = 24 * megabyte;

std::size_t free_memory(CUcontext in) {
  std::size_t free = 0, total = 0;
  CUcontext popped = nullptr;
  MUST(cuCtxPushCurrent(in));
  MUST(cuMemGetInfo(&free, &total));
  MUST(cuCtxPopCurrent(&popped));
  return free;
}

struct belongings {
  CUdeviceptr large[3] = {}, small = 0, pitched = 0, managed = 0;
  void* pinned = nullptr;
  CUarray array = nullptr;
  std::size_t at_least() const { return 3 * ::large; }
};

/// In the current context, with work under way.
belongings acquire() {
  belongings b;
  std::size_t pitch = 0;
  for (CUdeviceptr& each : b.large) {
    MUST(cuMemAlloc(&each, large));
    MUST(cuMemsetD8(each, 0x5a, megabyte));
  }
  MUST(cuMemAlloc(&b.small, 100));
  MUST(cuMemAllocPitch(&b.pitched, &pitch, 3000, 100, 4));
  MUST(cuMemAllocManaged(&b.managed, megabyte, CU_MEM_ATTACH_GLOBAL));
  std::memset(reinterpret_cast<void*>(b.managed), 1, megabyte);
  MUST(cuMemHostAlloc(&b.pinned, megabyte, 0));
  CUDA_ARRAY_DESCRIPTOR about{};
  about.Width = about.Height = 1024;
  about.Format = CU_AD_FORMAT_FLOAT;
  about.NumChannels = 4;
  MUST(cuArrayCreate(&b.array, &about));
  CUstream stream = nullptr;
  CUevent event = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, 0));
  MUST(cuMemsetD8Async(b.small, 3, 100, stream));  // unfinished work does not keep the memory
  MUST(cuEventRecord(event, stream));
  return b;
}

/// Checks from a context that is still alive.
void is_gone(const belongings& b, CUcontext seen_from) {
  CUcontext popped = nullptr;
  MUST(cuCtxPushCurrent(seen_from));
  char byte = 0;
  for (CUdeviceptr each : {b.large[0], b.large[2] + 5, b.small, b.pitched}) {
    EXPECT(cuMemcpyDtoH(&byte, each, 1) == CUDA_ERROR_INVALID_VALUE);
    unsigned type = 0;
    EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, each) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(each) == CUDA_ERROR_INVALID_VALUE);
  }
  MUST(cuCtxPopCurrent(&popped));
}

template <class End>
void round_of(const char* how, CUcontext mortal, CUcontext watch, bool first, End end) {
  MUST(cuCtxSetCurrent(mortal));
  const std::size_t before = free_memory(watch);
  const belongings b = acquire();
  const std::size_t during = free_memory(watch);
  EXPECT(during + b.at_least() <= before);
  end();
  const std::size_t after = free_memory(watch);
  // The context's own memory comes back too; what a driver sets up once for a process, in the first round,
  // stays.
  if (!first && after + slack < before) {
    std::printf("%s: %zu MB free before, %zu with it, %zu after\n", how, before >> 20, during >> 20,
                after >> 20);
    EXPECT(false);
  }
  is_gone(b, watch);
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext watch = nullptr, primary = nullptr, current = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuCtxCreate(&watch, nullptr, 0, device));
  CUdeviceptr kept = 0;
  MUST(cuMemAlloc(&kept, large));
  MUST(cuMemsetD32(kept, 4711, large / 4));
  MUST(cuCtxSynchronize());

  for (int round = 0; round < 3; ++round) {
    CUcontext mortal = nullptr;
    MUST(cuCtxCreate(&mortal, nullptr, 0, device));
    round_of("destroyed", mortal, watch, round == 0, [&] {
      MUST(cuCtxDestroy(mortal));
      MUST(cuCtxGetCurrent(&current));
      EXPECT(current != mortal);
    });
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    round_of("primary reset", primary, watch, round == 0, [&] { MUST(cuDevicePrimaryCtxReset(device)); });
    MUST(cuCtxSetCurrent(watch));
    MUST(cuDevicePrimaryCtxRelease(device));
    unsigned flags = 0;
    int active = 1;
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
    EXPECT(active == 0);
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuDevicePrimaryCtxRelease(device));
    round_of("last release", primary, watch, round == 0, [&] { MUST(cuDevicePrimaryCtxRelease(device)); });
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
    EXPECT(active == 0);
  }

  MUST(cuCtxSetCurrent(watch));
  std::vector<unsigned> seen(large / 4);
  MUST(cuMemcpyDtoH(seen.data(), kept, large));
  for (unsigned value : seen) EXPECT(value == 4711);
  MUST(cuMemFree(kept));
  MUST(cuCtxDestroy(watch));
  return pass("context_ends");
}
