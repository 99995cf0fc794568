// Shareable handles between two processes through the driver API: physical memory and pools as file
// descriptors that travel by SCM_RIGHTS, pointers of pools, and what is refused: handles, descriptors and
// numbers that nobody gave out.
#include <cuda.h>
#include <fcntl.h>

#include "processes.hh"
#include "shareable.hh"

namespace {

CUcontext start() {
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  return context;
}

CUresult import_block(CUmemGenericAllocationHandle& out, int fd) {
  return cuMemImportFromShareableHandle(&out, as_handle(fd), by_descriptor);
}

// --- physical memory

void export_blocks(channel& to) {
  start();
  const CUmemAllocationProp p = properties();
  CUmemGenericAllocationHandle block, own, plain;
  int fd = -1, second = -1, none = -1;
  MUST(cuMemCreate(&block, block_size, &p, 0));
  const CUmemAllocationProp without = properties(CU_MEM_HANDLE_TYPE_NONE);
  MUST(cuMemCreate(&plain, block_size, &without, 0));
  EXPECT(cuMemExportToShareableHandle(&none, plain, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemExportToShareableHandle(&none, block, CU_MEM_HANDLE_TYPE_FABRIC, 0) ==
         CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemExportToShareableHandle(&none, block, CU_MEM_HANDLE_TYPE_NONE, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemExportToShareableHandle(&none, block, by_descriptor, 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemExportToShareableHandle(nullptr, block, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemExportToShareableHandle(&fd, block, by_descriptor, 0));
  MUST(cuMemExportToShareableHandle(&second, block, by_descriptor, 0));
  EXPECT(fd >= 0 && second >= 0 && fd != second);
  EXPECT(::fcntl(fd, F_GETFD) == FD_CLOEXEC);
  MUST(import_block(own, fd));  // one's own is imported like another's
  EXPECT(own != block);
  const CUdeviceptr at = map_at(0, block), twin = map_at(0, own);
  MUST(cuMemsetD32(at, 77, block_size / 4));
  EXPECT(word_at(twin + block_size - 4) == 77);
  unsigned long long types = 9;
  MUST(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
  EXPECT(types == by_descriptor);
  CUipcMemHandle legacy;
  EXPECT(cuIpcGetMemHandle(&legacy, at) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuCtxSynchronize());
  to.put_descriptor(fd);
  MUST(cuMemUnmap(twin, block_size));
  MUST(cuMemRelease(own));
  ::close(fd);
  ::close(second);
  to.hear();  // the other side has written
  EXPECT(word_at(at) == 78);
  MUST(cuMemUnmap(at, block_size));
  MUST(cuMemRelease(block));
  to.tell();
  // A descriptor holds the memory when everything else has let go.
  MUST(cuMemCreate(&block, block_size, &p, 0));
  map_at(at, block);
  MUST(cuMemsetD32(at, 79, block_size / 4));
  MUST(cuMemExportToShareableHandle(&fd, block, by_descriptor, 0));
  MUST(cuCtxSynchronize());
  MUST(cuMemUnmap(at, block_size));
  MUST(cuMemRelease(block));
  to.put_descriptor(fd);
  ::close(fd);
  to.hear();
}

void import_blocks(channel& to) {
  start();
  CUmemGenericAllocationHandle block, again, none;
  int fd = to.take_descriptor();
  EXPECT(cuMemImportFromShareableHandle(nullptr, as_handle(fd), by_descriptor) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemImportFromShareableHandle(&none, as_handle(fd), CU_MEM_HANDLE_TYPE_NONE) ==
         CUDA_ERROR_INVALID_VALUE);
  MUST(import_block(block, fd));
  MUST(import_block(again, fd));
  EXPECT(block != again);
  ::close(fd);
  CUmemAllocationProp told{};
  MUST(cuMemGetAllocationPropertiesFromHandle(&told, block));
  EXPECT(told.type == CU_MEM_ALLOCATION_TYPE_PINNED && told.location.id == 0);
  EXPECT(cuMemExportToShareableHandle(&fd, block, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr at = map_at(0, block);
  EXPECT(word_at(at) == 77 && word_at(at + block_size - 4) == 77);
  MUST(cuMemRelease(again));
  MUST(cuMemRelease(block));
  MUST(cuMemsetD32(at, 78, block_size / 4));
  MUST(cuCtxSynchronize());
  to.tell();
  to.hear();
  EXPECT(word_at(at + block_size - 4) == 78);  // the maker has let it go
  MUST(cuMemUnmap(at, block_size));
  fd = to.take_descriptor();
  MUST(import_block(block, fd));
  ::close(fd);
  map_at(at, block);
  EXPECT(word_at(at + 4) == 79);
  MUST(cuMemUnmap(at, block_size));
  MUST(cuMemRelease(block));
  to.tell();
}

// --- memory comes back when the last descriptor is closed

void descriptors_hold_nothing_for_ever(channel& to) {
  start();
  const CUmemAllocationProp p = properties();
  // Others come and go on the same device meanwhile; what is lost is lost in every round.
  bool all_back = false;
  for (int round = 0; round < 5 && !all_back; ++round) {
    std::size_t before = 0, after = 0, total = 0;
    MUST(cuMemGetInfo(&before, &total));
    for (int i = 0; i < 200; i++) {
      CUmemGenericAllocationHandle block;
      int fd;
      MUST(cuMemCreate(&block, block_size, &p, 0));
      MUST(cuMemExportToShareableHandle(&fd, block, by_descriptor, 0));
      if (i % 2) ::close(fd);
      MUST(cuMemRelease(block));
      if (i % 2 == 0) ::close(fd);
    }
    MUST(cuMemGetInfo(&after, &total));
    all_back = after >= before || before - after <= 8 * block_size;
  }
  EXPECT(all_back);
  to.tell();
}
void only_listen(channel& to) { to.hear(); }

// --- pools

struct pool_pointers {
  CUmemPoolPtrExportData first, second;
};

void export_pool(channel& to) {
  start();
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool, plain, standard;
  CUdeviceptr first, second, other;
  int fd = -1;
  CUmemPoolPtrExportData none;
  MUST(cuDeviceGetDefaultMemPool(&standard, 0));
  EXPECT(cuMemPoolExportToShareableHandle(&fd, standard, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemAllocAsync(&other, 4096, 0));
  EXPECT(cuMemPoolExportPointer(&none, other) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemPoolCreate(&plain, &p));
  EXPECT(cuMemPoolExportToShareableHandle(&fd, plain, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  p.handleTypes = by_descriptor;
  MUST(cuMemPoolCreate(&pool, &p));
  EXPECT(cuMemPoolExportToShareableHandle(&fd, pool, by_descriptor, 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemPoolExportToShareableHandle(nullptr, pool, by_descriptor, 0) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemPoolExportToShareableHandle(&fd, pool, by_descriptor, 0));
  MUST(cuMemAllocFromPoolAsync(&first, 1 << 20, pool, 0));
  MUST(cuMemAllocFromPoolAsync(&second, 1 << 20, pool, 0));
  MUST(cuMemsetD32(first, 79, 1 << 18));
  MUST(cuMemsetD32(second, 80, 1 << 18));
  MUST(cuCtxSynchronize());
  pool_pointers pointers;
  EXPECT(cuMemPoolExportPointer(&none, first + 4096) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemPoolExportPointer(&pointers.first, first));
  MUST(cuMemPoolExportPointer(&pointers.second, second));
  unsigned long long types = 9;
  MUST(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, first));
  EXPECT(types == by_descriptor);
  to.put_descriptor(fd);
  ::close(fd);
  to.put(pointers);
  to.hear();  // the other side has written, and freed its own
  EXPECT(word_at(first) == 81 && word_at(second) == 80);
  MUST(cuMemFreeAsync(first, 0));
  MUST(cuCtxSynchronize());
  EXPECT(cuMemPoolExportPointer(&none, first) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemFree(second));
  MUST(cuMemPoolDestroy(pool));
}

void import_pool(channel& to) {
  start();
  const int fd = to.take_descriptor();
  CUmemoryPool pool, again, none;
  CUmemGenericAllocationHandle block;
  EXPECT(cuMemPoolImportFromShareableHandle(&none, as_handle(fd), by_descriptor, 1) ==
         CUDA_ERROR_INVALID_VALUE);
  EXPECT(import_block(block, fd) != CUDA_SUCCESS);  // a pool is no block
  MUST(cuMemPoolImportFromShareableHandle(&pool, as_handle(fd), by_descriptor, 0));
  MUST(cuMemPoolImportFromShareableHandle(&again, as_handle(fd), by_descriptor, 0));
  EXPECT(pool == again);
  ::close(fd);
  pool_pointers pointers = to.take<pool_pointers>();
  CUdeviceptr first, second, same, nowhere;
  EXPECT(cuMemAllocFromPoolAsync(&nowhere, 4096, pool, 0) == CUDA_ERROR_INVALID_VALUE);
  cuuint64_t held = 0;
  EXPECT(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held) ==
         CUDA_ERROR_INVALID_VALUE);
  for (int bit : {0, 77, 200, 300}) {
    CUmemPoolPtrExportData forged = pointers.first;
    reinterpret_cast<unsigned char*>(&forged)[bit / 8] ^= 1 << bit % 8;
    // The driver itself does not look at every bit; what it looks at first, it refuses.
    if (bit == 0) EXPECT(cuMemPoolImportPointer(&nowhere, pool, &forged) == CUDA_ERROR_INVALID_VALUE);
  }
  MUST(cuMemPoolImportPointer(&first, pool, &pointers.first));
  MUST(cuMemPoolImportPointer(&same, pool, &pointers.first));
  EXPECT(first == same);
  MUST(cuMemPoolImportPointer(&second, pool, &pointers.second));
  EXPECT(word_at(first) == 79 && word_at(second + (1 << 20) - 4) == 80);
  CUdeviceptr begin;
  std::size_t size;
  MUST(cuMemGetAddressRange(&begin, &size, first + 4096));
  EXPECT(begin == first && size == 1 << 20);
  CUmemPoolPtrExportData onward;
  EXPECT(cuMemPoolExportPointer(&onward, first) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemsetD32(first, 81, 1 << 18));
  MUST(cuMemFreeAsync(first, 0));
  MUST(cuCtxSynchronize());
  EXPECT(cuMemFreeAsync(first, 0) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemFree(second));
  MUST(cuMemPoolDestroy(pool));
  to.tell();
}

// --- what nobody gave out

struct good_ones {
  CUipcMemHandle memory;
  CUipcEventHandle event;
  int process = 0;
};

void give_good_ones(channel& to) {
  start();
  CUdeviceptr data;
  CUevent event;
  good_ones good;
  MUST(cuMemAlloc(&data, block_size));
  MUST(cuMemsetD32(data, 5, block_size / 4));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  MUST(cuIpcGetMemHandle(&good.memory, data));
  MUST(cuIpcGetEventHandle(&good.event, event));
  good.process = ::getpid();
  MUST(cuCtxSynchronize());
  to.put(good);
  to.hear();
  EXPECT(word_at(data) == 5 && word_at(data + block_size - 4) == 5);
}

void forge(channel& to) {
  start();
  const good_ones good = to.take<good_ones>();
  CUdeviceptr at;
  CUevent event;
  CUmemGenericAllocationHandle block;
  CUmemoryPool pool;
  // Handles out of nothing, zeros, and process numbers where another product keeps them.
  CUipcMemHandle memory{};
  CUipcEventHandle other{};
  EXPECT(cuIpcOpenMemHandle(&at, memory, 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenEventHandle(&event, other) == CUDA_ERROR_MAP_FAILED);
  numbers random;
  for (int i = 0; i < 200; i++) {
    for (unsigned char* p = reinterpret_cast<unsigned char*>(&memory);
         p != reinterpret_cast<unsigned char*>(&memory + 1); p++)
      *p = static_cast<unsigned char>(random.next());
    EXPECT(cuIpcOpenMemHandle(&at, memory, 1) == CUDA_ERROR_INVALID_VALUE);
  }
  for (int offset = 0; offset + 4 <= 64; offset += 4) {
    memory = {};
    std::memcpy(reinterpret_cast<char*>(&memory) + offset, &good.process, sizeof good.process);
    EXPECT(cuIpcOpenMemHandle(&at, memory, 1) == CUDA_ERROR_INVALID_VALUE);
  }
  // Descriptors of anything else, and numbers that are none.
  int pipes[2];
  EXPECT(::pipe(pipes) == 0);
  for (int fd : {-1, 1000, 0, 1, 2, pipes[0], pipes[1], ::open("/dev/null", O_RDWR),
                 ::open("/etc/passwd", O_RDONLY), ::open("/proc/self/mem", O_RDWR)}) {
    EXPECT(import_block(block, fd) != CUDA_SUCCESS);
    EXPECT(cuMemPoolImportFromShareableHandle(&pool, as_handle(fd), by_descriptor, 0) != CUDA_SUCCESS);
  }
  char fabric[64] = {};
  EXPECT(cuMemImportFromShareableHandle(&block, fabric, CU_MEM_HANDLE_TYPE_FABRIC) ==
         CUDA_ERROR_NOT_SUPPORTED);
  // And the good ones are good.
  MUST(cuIpcOpenMemHandle(&at, good.memory, 1));
  EXPECT(word_at(at + block_size - 4) == 5);
  MUST(cuIpcCloseMemHandle(at));
  MUST(cuIpcOpenEventHandle(&event, good.event));
  MUST(cuEventDestroy(event));
  to.tell();
}

}  // namespace

int main(int count, char** values) {
  return play("ipc_handles",
              {{"blocks", export_blocks, import_blocks},
               {"blocks_spawned", export_blocks, import_blocks, true},
               {"memory_comes_back", descriptors_hold_nothing_for_ever, only_listen},
               {"pools", export_pool, import_pool},
               {"pools_spawned", export_pool, import_pool, true},
               {"forged", give_good_ones, forge}},
              count, values);
}
