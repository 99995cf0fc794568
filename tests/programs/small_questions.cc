// What frameworks ask before every operation, a hundred thousand times: the current device, whether the
// primary context is active, whether a stream is captured, the thread's capture mode, an attribute, what a
// pointer is, how a kernel fits. The answers must always be right, also just after they have changed. usage:
// small_questions [ROUNDS]
#include <cuda.h>

#include "common.hh"

namespace {

constexpr char ptx[] =
    ".version 6.4\n.target sm_52\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 to) { ret; }\n";

}  // namespace

int main(int count, char** values) {
  const long rounds = argument(count, values, 1, 10000);
  CUdevice device = 0, seen = -1;
  CUcontext context = nullptr, current = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  MUST(cuInit(0));
  unsigned flags = 9;
  int active = 9;
  MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT(active == 0);
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemAlloc(&memory, 4096));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&function, module, "nothing"));
  int warp = 0, blocks = 0, first_blocks = 0;
  MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&first_blocks, function, 128, 0));
  EXPECT(first_blocks > 0);
  for (long round = 0; round < rounds; ++round) {
    MUST(cuCtxGetDevice(&seen));
    EXPECT(seen == device);
    MUST(cuCtxGetCurrent(&current));
    EXPECT(current == context);
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
    EXPECT(active == 1);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    MUST(cuStreamIsCapturing(stream, &status));
    EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    EXPECT(warp == 32);
    unsigned type = 0;
    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 100));
    EXPECT(type == CU_MEMORYTYPE_DEVICE);
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0));
    EXPECT(blocks == first_blocks);
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuStreamIsCapturing(stream, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuStreamIsCapturing(stream, &status));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
  MUST(cuMemFree(memory));
  unsigned type = 0;
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 100) ==
         CUDA_ERROR_INVALID_VALUE);
  MUST(cuCtxSetCurrent(nullptr));
  EXPECT(cuCtxGetDevice(&seen) == CUDA_ERROR_INVALID_CONTEXT);
  MUST(cuDevicePrimaryCtxRelease(device));
  MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT(active == 0);
  return pass("small_questions");
}
