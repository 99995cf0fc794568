// Calls to the driver at the very end of a process. Objects made after the first call are destroyed while the
// driver still works. Objects made before it find the driver gone: every call returns an error and none
// waits, although work is unfinished and a thread still waits.
#include <cuda.h>
#include <unistd.h>

#include <thread>

#include "common.hh"

namespace {

/// Destructors must not call exit(), so they end the process another way.
#define HOLDS(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::printf("FAIL %s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::fflush(stdout);                                                     \
      _exit(1);                                                                \
    }                                                                          \
  } while (0)

struct things {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
} made;

bool early_was_destroyed = false;

/// Made before the first call.
struct late {
  ~late() {
    HOLDS(early_was_destroyed);
    CUdeviceptr more = 0;
    CUstream stream = nullptr;
    char byte = 0;
    for (int i = 0; i < 3; ++i) {
      HOLDS(cuMemAlloc(&more, 64) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuMemcpyDtoH(&byte, made.memory, 1) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuMemsetD8Async(made.memory, 1, 1, made.stream) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuStreamCreate(&stream, 0) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuStreamSynchronize(made.stream) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuEventQuery(made.event) == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuCtxSynchronize() == CUDA_ERROR_DEINITIALIZED);
      HOLDS(cuMemFree(made.memory) == CUDA_ERROR_DEINITIALIZED);
    }
    pass("late_calls");
  }
};

/// Made after it.
struct early {
  ~early() {
    char byte = 0;
    HOLDS(cuMemcpyDtoH(&byte, made.memory, 1) == CUDA_SUCCESS && byte == 9);
    HOLDS(cuStreamSynchronize(made.stream) == CUDA_SUCCESS);
    early_was_destroyed = true;
  }
};

}  // namespace

int main() {
  static late last;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemAlloc(&made.memory, 1 << 20));
  MUST(cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&made.event, 0));
  static early first;
  MUST(cuMemsetD8(made.memory, 9, 1 << 20));
  MUST(cuEventRecord(made.event, made.stream));
  // A thread that has used the driver and never ends by itself.
  std::thread([context] {
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamSynchronize(made.stream));
    for (;;) pause();
  }).detach();
  usleep(50000);
  return 0;
}
