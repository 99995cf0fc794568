// Ranks that see one GPU each, as Ray, Slurm and containers start them, and share device memory all the same:
// by IPC handle, by descriptor, by a pool. The maker's device is hidden from the taker, and counts as the
// taker's own.
#include <cuda.h>

#include "processes.hh"
#include "shareable.hh"

namespace {

constexpr std::size_t piece = 1 << 20;

/// The context of the only device that this process sees; before anything else of CUDA.
CUcontext start(const char* visible) {
  int count = 0;
  CUcontext context = nullptr;
  EXPECT(::setenv("CUDA_VISIBLE_DEVICES", visible, 1) == 0);
  MUST(cuInit(0));
  MUST(cuDeviceGetCount(&count));
  EXPECT(count == 1);
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  return context;
}

int device_of(CUdeviceptr at) {
  int device = -9;
  MUST(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
  return device;
}

/// Both ways: what the maker has written is there, and a copy within the taker's memory reaches it.
void use(CUdeviceptr at, unsigned value) {
  CUdeviceptr own = 0;
  EXPECT(word_at(at) == value && word_at(at + piece - 4) == value);
  MUST(cuMemAlloc(&own, piece));
  MUST(cuMemcpyDtoD(own, at, piece));
  EXPECT(word_at(own + piece - 4) == value);
  MUST(cuMemsetD32(own, value + 1, piece / 4));
  MUST(cuMemcpyDtoD(at, own, piece));
  MUST(cuMemsetD32(at, value + 2, 1));
  MUST(cuCtxSynchronize());
  MUST(cuMemFree(own));
}

void changed(CUdeviceptr at, unsigned value) {
  EXPECT(word_at(at) == value + 2 && word_at(at + 4) == value + 1 && word_at(at + piece - 4) == value + 1);
}

void filled(CUdeviceptr at, unsigned value) {
  MUST(cuMemsetD32(at, value, piece / 4));
  MUST(cuCtxSynchronize());
}

// --- IPC

void offers_ipc(channel& to) {
  start("1");
  CUdeviceptr at = 0;
  CUipcMemHandle handle;
  MUST(cuMemAlloc(&at, piece));
  filled(at, 70);
  MUST(cuIpcGetMemHandle(&handle, at));
  to.put(handle);
  to.hear();
  changed(at, 70);
  MUST(cuMemFree(at));
}

void opens_ipc(channel& to) {
  const CUcontext context = start("0");
  const auto handle = to.take<CUipcMemHandle>();
  CUdeviceptr at = 0, again = 0;
  CUcontext told = nullptr;
  MUST(cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  MUST(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT(at == again);
  EXPECT(device_of(at) == 0);
  MUST(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_CONTEXT, at));
  EXPECT(told == context);
  use(at, 70);
  MUST(cuIpcCloseMemHandle(at));
  MUST(cuIpcCloseMemHandle(at));
  to.tell();
}

// --- physical memory by descriptor

void unmap(CUdeviceptr at, CUmemGenericAllocationHandle block) {
  MUST(cuMemUnmap(at, block_size));
  MUST(cuMemAddressFree(at, block_size));
  MUST(cuMemRelease(block));
}

void exports(channel& to) {
  start("1");
  const CUmemAllocationProp p = properties();
  CUmemGenericAllocationHandle block = 0;
  int fd = -1;
  MUST(cuMemCreate(&block, block_size, &p, 0));
  const CUdeviceptr at = map_at(0, block);
  filled(at, 80);
  MUST(cuMemExportToShareableHandle(&fd, block, by_descriptor, 0));
  to.put_descriptor(fd);
  ::close(fd);
  to.hear();
  changed(at, 80);
  unmap(at, block);
}

void imports(channel& to) {
  start("0");
  const int fd = to.take_descriptor();
  CUmemGenericAllocationHandle block = 0;
  CUmemAllocationProp told{};
  MUST(cuMemImportFromShareableHandle(&block, as_handle(fd), by_descriptor));
  ::close(fd);
  MUST(cuMemGetAllocationPropertiesFromHandle(&told, block));
  EXPECT(told.location.id == CU_DEVICE_INVALID);
  const CUdeviceptr at = map_at(0, block);
  EXPECT(device_of(at) == 0);
  use(at, 80);
  unmap(at, block);
  to.tell();
}

// --- pools

void exports_pool(channel& to) {
  start("1");
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.handleTypes = by_descriptor;
  CUmemoryPool pool = nullptr;
  CUdeviceptr at = 0;
  CUmemPoolPtrExportData pointer;
  int fd = -1;
  MUST(cuMemPoolCreate(&pool, &p));
  MUST(cuMemAllocFromPoolAsync(&at, piece, pool, nullptr));
  filled(at, 90);
  MUST(cuMemPoolExportToShareableHandle(&fd, pool, by_descriptor, 0));
  MUST(cuMemPoolExportPointer(&pointer, at));
  to.put_descriptor(fd);
  ::close(fd);
  to.put(pointer);
  to.hear();
  changed(at, 90);
  MUST(cuMemFree(at));
  MUST(cuMemPoolDestroy(pool));
}

void imports_pool(channel& to) {
  start("0");
  const int fd = to.take_descriptor();
  const auto pointer = to.take<CUmemPoolPtrExportData>();
  CUmemoryPool pool = nullptr;
  CUdeviceptr at = 0;
  CUmemPoolPtrExportData copy = pointer;
  MUST(cuMemPoolImportFromShareableHandle(&pool, as_handle(fd), by_descriptor, 0));
  ::close(fd);
  MUST(cuMemPoolImportPointer(&at, pool, &copy));
  EXPECT(device_of(at) == 0);
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemPoolSetAccess(pool, &access, 1));
  CUmemAccess_flags may{};
  MUST(cuMemPoolGetAccess(&may, pool, &access.location));
  EXPECT(may == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  use(at, 90);
  MUST(cuMemFree(at));
  MUST(cuMemPoolDestroy(pool));
  to.tell();
}

// --- events

void records(channel& to) {
  start("1");
  CUevent event = nullptr;
  CUipcEventHandle handle;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  MUST(cuIpcGetEventHandle(&handle, event));
  MUST(cuEventRecord(event, nullptr));
  to.put(handle);
  to.hear();
  MUST(cuEventDestroy(event));
}

void awaits(channel& to) {
  start("0");
  CUevent event = nullptr;
  MUST(cuIpcOpenEventHandle(&event, to.take<CUipcEventHandle>()));
  MUST(cuStreamWaitEvent(nullptr, event, 0));
  MUST(cuCtxSynchronize());
  MUST(cuEventSynchronize(event));
  MUST(cuEventDestroy(event));
  to.tell();
}

/// In a process of its own: this one is to fork others.
int devices_there() {
  const pid_t child = ::fork();
  if (child == 0) {
    int count = 0;
    ::_exit(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0);
  }
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

int main(int count, char** values) {
  if (count < 3 && devices_there() < 2) {
    std::printf("one device: nothing to hide\n");
    return pass("hidden_devices");
  }
  return play("hidden_devices",
              {{"ipc", offers_ipc, opens_ipc},
               {"descriptor", exports, imports},
               {"pool", exports_pool, imports_pool},
               {"event", records, awaits}},
              count, values);
}
