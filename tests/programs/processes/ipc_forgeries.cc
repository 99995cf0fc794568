// Outboard refuses a handle if any bit differs from what it returned. Drivers ignore some bits, so this
// program does not pass natively.
#include <cuda.h>

#include "../processes.hh"

namespace {

struct all_kinds {
  CUipcMemHandle memory;
  CUipcEventHandle event;
  CUmemPoolPtrExportData pointer;
};

void start() {
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
}

void give(channel& to) {
  start();
  CUdeviceptr data, pooled;
  CUevent event;
  all_kinds good;
  MUST(cuMemAlloc(&data, 1 << 20));
  MUST(cuIpcGetMemHandle(&good.memory, data));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  MUST(cuIpcGetEventHandle(&good.event, event));
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool;
  MUST(cuMemPoolCreate(&pool, &p));
  MUST(cuMemAllocFromPoolAsync(&pooled, 1 << 20, pool, 0));
  MUST(cuCtxSynchronize());
  int fd;
  MUST(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  MUST(cuMemPoolExportPointer(&good.pointer, pooled));
  to.put_descriptor(fd);
  to.put(good);
  to.hear();
}

template <class H>
H flipped(H handle, int bit) {
  reinterpret_cast<unsigned char*>(&handle)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
  return handle;
}

template <class To, class From>
To taken_for(const From& handle) {
  To other;
  static_assert(sizeof other == sizeof handle);
  std::memcpy(static_cast<void*>(&other), &handle, sizeof other);
  return other;
}

void flip(channel& to) {
  start();
  const int fd = to.take_descriptor();
  CUmemoryPool pool;
  MUST(cuMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  all_kinds good = to.take<all_kinds>();
  CUdeviceptr at;
  CUevent event;
  for (int bit = 0; bit < 512; bit++) {
    EXPECT(cuIpcOpenMemHandle(&at, flipped(good.memory, bit), 1) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuIpcOpenEventHandle(&event, flipped(good.event, bit)) == CUDA_ERROR_MAP_FAILED);
    CUmemPoolPtrExportData forged = flipped(good.pointer, bit);
    EXPECT(cuMemPoolImportPointer(&at, pool, &forged) == CUDA_ERROR_INVALID_VALUE);
  }
  // A handle of one kind used as another kind.
  EXPECT(cuIpcOpenMemHandle(&at, taken_for<CUipcMemHandle>(good.event), 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenMemHandle(&at, taken_for<CUipcMemHandle>(good.pointer), 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenEventHandle(&event, taken_for<CUipcEventHandle>(good.memory)) == CUDA_ERROR_MAP_FAILED);
  auto wrong = taken_for<CUmemPoolPtrExportData>(good.memory);
  EXPECT(cuMemPoolImportPointer(&at, pool, &wrong) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuIpcOpenMemHandle(&at, good.memory, 1));
  MUST(cuIpcOpenEventHandle(&event, good.event));
  MUST(cuMemPoolImportPointer(&at, pool, &good.pointer));
  to.tell();
}

}  // namespace

int main(int count, char** values) {
  return play("ipc_forgeries", {{"every_bit", give, flip}}, count, values);
}
