// Questions whose answers programs and frameworks branch on: which pool and which device memory is of, also
// of other pools and processes, what a context that died answers, priorities, the loading mode. With one
// device and with several. Natively run it with the argument "native": it leaves out what ends the process.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "common.hh"

namespace {

CUcontext context_on(CUdevice device) {
  CUcontext made = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&made, device));
  MUST(cuCtxSetCurrent(made));
  return made;
}

int device_of(CUdeviceptr memory) {
  int device = -9;
  MUST(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  return device;
}

CUmemoryPool pool_of(CUdeviceptr memory) {
  CUmemoryPool pool = nullptr, listed = nullptr;
  MUST(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  void* out[] = {&listed};
  MUST(cuPointerGetAttributes(1, which, out, memory));
  EXPECT(listed == pool);
  return pool;
}

void pools(CUdevice last) {
  CUdeviceptr standard = 0, own = 0, plain = 0;
  MUST(cuMemAllocAsync(&standard, 3000, nullptr));
  const CUmemoryPool first = pool_of(standard + 100);  // before anybody asked for it by name
  CUmemoryPool named = nullptr, made = nullptr;
  MUST(cuDeviceGetDefaultMemPool(&named, 0));
  EXPECT(first == named && device_of(standard) == 0);

  CUmemPoolProps wanted{};
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = last;
  MUST(cuMemPoolCreate(&made, &wanted));
  MUST(cuMemAllocFromPoolAsync(&own, 3000, made, nullptr));
  EXPECT(pool_of(own + 2999) == made && device_of(own) == last);
  MUST(cuMemAlloc(&plain, 3000));
  EXPECT(pool_of(plain) == nullptr);
  int shareable = -1;
  MUST(cuPointerGetAttribute(&shareable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, plain));
  EXPECT((shareable & 0xff) == 1);
  MUST(cuMemFreeAsync(standard, nullptr));
  MUST(cuMemFreeAsync(own, nullptr));
  MUST(cuMemFree(plain));
  MUST(cuStreamSynchronize(nullptr));
  MUST(cuMemPoolDestroy(made));
}

void priorities() {
  int least = 9, greatest = 9;
  MUST(cuCtxGetStreamPriorityRange(&least, nullptr));
  MUST(cuCtxGetStreamPriorityRange(nullptr, &greatest));
  EXPECT(least == 0 && greatest < 0);
  for (const int wanted : {greatest - 4, greatest, greatest + 1, 0, 3}) {
    CUstream stream = nullptr;
    int got = 99;
    MUST(cuStreamCreateWithPriority(&stream, 0, wanted));
    MUST(cuStreamGetPriority(stream, &got));
    EXPECT(got == (wanted < greatest ? greatest : wanted > 0 ? 0 : wanted));
    MUST(cuStreamDestroy(stream));
  }
}

/// Driver 580 corrupts its heap when a dead context is made current (5 of 14 runs end in free() or malloc()).
void a_dead_context_is_current(CUcontext mortal) {
  constexpr CUresult dead = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CUdeviceptr memory = 0;
  unsigned long long id = 0;
  unsigned version = 0;
  int least = 0;
  std::size_t limit = 0;
  CUfunc_cache cache{};
  MUST(cuCtxSetCurrent(mortal));
  EXPECT(cuCtxGetApiVersion(nullptr, &version) == dead);
  EXPECT(cuCtxGetId(nullptr, &id) == dead);
  EXPECT(cuCtxGetCacheConfig(&cache) == dead);
  EXPECT(cuCtxGetStreamPriorityRange(&least, nullptr) == dead);
  EXPECT(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE) == dead);
  EXPECT(cuCtxSynchronize() == dead && cuMemAlloc(&memory, 64) == dead);
}

void a_context_that_died(CUcontext lives, bool native) {
  constexpr CUresult dead = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CUcontext mortal = nullptr;
  CUevent event = nullptr, other = nullptr;
  MUST(cuEventCreate(&other, 0));
  MUST(cuCtxCreate(&mortal, nullptr, 0, 0));
  MUST(cuEventCreate(&event, 0));
  MUST(cuEventRecord(event, nullptr));
  MUST(cuCtxDestroy(mortal));
  MUST(cuCtxSetCurrent(lives));
  EXPECT(cuCtxEnablePeerAccess(mortal, 0) == dead);
  EXPECT(cuCtxDisablePeerAccess(mortal) == dead);
  EXPECT(cuEventQuery(event) == dead && cuEventSynchronize(event) == dead);
  EXPECT(cuCtxRecordEvent(mortal, other) == dead);
  unsigned long long id = 0;
  unsigned version = 0;
  EXPECT(cuCtxGetId(mortal, &id) == dead);
  EXPECT(cuCtxGetApiVersion(mortal, &version) == CUDA_ERROR_INVALID_CONTEXT);
  if (!native) a_dead_context_is_current(mortal);
  MUST(cuCtxSetCurrent(lives));
  MUST(cuCtxSynchronize());
}

/// Another process's memory of the last device, opened on the first.
void opened(int from_child, int to_child) {
  CUipcMemHandle handle{};
  EXPECT(read(from_child, &handle, sizeof handle) == sizeof handle);
  CUdeviceptr memory = 0;
  MUST(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT(device_of(memory) == 0);
  unsigned value = 0;
  MUST(cuMemcpyDtoH(&value, memory, sizeof value));
  EXPECT(value == 4711);
  MUST(cuIpcCloseMemHandle(memory));
  EXPECT(write(to_child, "", 1) == 1);
}

int lend(int to_parent, int from_parent) {
  int devices = 0;
  MUST(cuInit(0));
  MUST(cuDeviceGetCount(&devices));
  context_on(devices - 1);
  CUdeviceptr memory = 0;
  CUipcMemHandle handle{};
  MUST(cuMemAlloc(&memory, 1 << 21));
  MUST(cuMemsetD32(memory, 4711, 16));
  MUST(cuCtxSynchronize());
  MUST(cuIpcGetMemHandle(&handle, memory));
  EXPECT(write(to_parent, &handle, sizeof handle) == sizeof handle);
  char done = 0;
  return read(from_parent, &done, 1) == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool native = argc > 1 && std::strcmp(argv[1], "native") == 0;
  int up[2], down[2];
  EXPECT(pipe(up) == 0 && pipe(down) == 0);
  const pid_t child = fork();
  // Each end closes what is the other's: who fails must not leave the other one waiting.
  close(child == 0 ? up[0] : up[1]);
  close(child == 0 ? down[1] : down[0]);
  if (child == 0) return lend(up[1], down[0]);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // by the program itself, before it begins
  MUST(cuInit(0));
  CUmoduleLoadingMode mode{};
  MUST(cuModuleGetLoadingMode(&mode));
  EXPECT(mode == CU_MODULE_EAGER_LOADING);
  int devices = 0;
  MUST(cuDeviceGetCount(&devices));
  CUcontext first = context_on(0);
  pools(devices - 1);
  priorities();
  a_context_that_died(first, native);
  opened(up[0], down[1]);
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  return pass("exact_answers");
}
