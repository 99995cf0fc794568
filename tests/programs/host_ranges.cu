// Memory of the host by cuMemCreate, as NCCL uses it: mapped where the program likes, at two addresses and in
// two processes, opened to host and device by turns; words that one side writes while the other waits; copies
// and fills of every kind, also by graphs. Where devices do not offer it (attribute 141) it must be refused.
#include <cuda.h>
#include <setjmp.h>

#include <atomic>

#include "processes.hh"

namespace {

constexpr std::size_t size = 4 << 20, words = size / sizeof(unsigned);
constexpr CUmemAccess_flags all = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

int attribute(CUdevice_attribute which) {
  int value = -1;
  MUST(cuDeviceGetAttribute(&value, which, 0));
  return value;
}

void begin() {
  MUST(cudaSetDevice(0));
  MUST(cudaFree(nullptr));
}

CUmemLocation host_node() {
  return {CU_MEM_LOCATION_TYPE_HOST_NUMA, std::max(attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0)};
}

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = host_node();
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

bool offered() { return attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0; }

CUmemGenericAllocationHandle make() {
  CUmemGenericAllocationHandle made = 0;
  const CUmemAllocationProp p = properties();
  MUST(cuMemCreate(&made, size, &p, 0));
  return made;
}

void open(CUdeviceptr at, CUmemAccess_flags to_device, CUmemAccess_flags to_host) {
  CUmemAccessDesc access[2]{};
  access[0].location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access[0].flags = to_device;
  access[1].location = host_node();
  access[1].flags = to_host;
  MUST(cuMemSetAccess(at, size, access, 2));
}

CUdeviceptr map(CUmemGenericAllocationHandle memory, CUdeviceptr at = 0) {
  if (at == 0) MUST(cuMemAddressReserve(&at, 2 * size, 0, 0, 0));
  MUST(cuMemMap(at, size, 0, memory, 0));
  return at;
}

void forget(CUdeviceptr at) {
  MUST(cuMemUnmap(at, size));
  MUST(cuMemAddressFree(at, 2 * size));
}

unsigned* of_host(CUdeviceptr at) { return reinterpret_cast<unsigned*>(at); }

sigjmp_buf out;
void jump_out(int) { siglongjmp(out, 1); }

bool faults(CUdeviceptr at, bool write) {
  struct sigaction to {
  }, was{};
  to.sa_handler = jump_out;
  sigaction(SIGSEGV, &to, &was);
  volatile unsigned* const word = of_host(at);
  bool faulted = true;
  if (sigsetjmp(out, 1) == 0) {
    if (write) {
      *word = 1;
    } else {
      (void)*word;
    }
    faulted = false;
  }
  sigaction(SIGSEGV, &was, nullptr);
  return faulted;
}

unsigned long long access_of(CUdeviceptr at, CUmemLocation where) {
  unsigned long long flags = 77;
  MUST(cuMemGetAccess(&flags, &where, at));
  return flags;
}

__global__ void add(unsigned* p, std::size_t count, unsigned what) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) p[i] += what;
}

/// Waits for the host's word, adds 1 to all others, and says so.
__global__ void answers(volatile unsigned* p, unsigned round) {
  while (p[0] != round) {
  }
  __threadfence_system();
  for (int i = 16; i < 1024; i++) p[i] += 1;
  __threadfence_system();
  p[8] = round;
}

void launch_add(CUdeviceptr at, unsigned what, cudaStream_t stream = nullptr) {
  add<<<words / 256, 256, 0, stream>>>(of_host(at), words, what);
  MUST(cudaGetLastError());
}

bool all_are(const unsigned* p, unsigned value) {
  for (std::size_t i = 0; i < words; i++)
    if (p[i] != value) return std::printf("word %zu is %u, not %u\n", i, p[i], value), false;
  return true;
}

void wrong_ways() {
  CUmemGenericAllocationHandle made = 0;
  const auto refusal = [&](auto change) {
    CUmemAllocationProp p = properties();
    change(p);
    return cuMemCreate(&made, size, &p, 0);
  };
  EXPECT(refusal([](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_HOST; }) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(refusal([](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT; }) ==
         CUDA_ERROR_INVALID_VALUE);
  EXPECT(refusal([](auto& p) { p.location.id = 77; }) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(refusal([](auto& p) { p.allocFlags.compressionType = 1; }) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(refusal([](auto& p) { p.allocFlags.gpuDirectRDMACapable = 1; }) == CUDA_ERROR_INVALID_VALUE);
}

void rights() {
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT(faults(at, false));
  EXPECT(access_of(at, device) == 0 && access_of(at, host_node()) == 0);
  open(at, all, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT(faults(at, false) && access_of(at, device) == all);
  launch_add(at, 5);
  open(at, all, CU_MEM_ACCESS_FLAGS_PROT_READ);
  MUST(cudaDeviceSynchronize());
  EXPECT(!faults(at, false) && faults(at, true) && all_are(of_host(at), 5));
  open(at, all, all);
  EXPECT(!faults(at, true) && access_of(at, host_node()) == all);
  EXPECT(cuMemAddressFree(at, 2 * size) != CUDA_SUCCESS);  // something lies there
  CUmemGenericAllocationHandle again = 0;
  MUST(cuMemRetainAllocationHandle(&again, of_host(at) + 100));
  EXPECT(again == memory);
  CUmemAllocationProp says{};
  MUST(cuMemGetAllocationPropertiesFromHandle(&says, memory));
  EXPECT(says.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && says.location.id == host_node().id);
  MUST(cuMemRelease(again));
  MUST(cuMemRelease(memory));  // it lives while it is mapped
  launch_add(at, 1);
  MUST(cudaDeviceSynchronize());
  EXPECT(of_host(at)[words - 1] == 6);
  MUST(cuMemUnmap(at, size));
  EXPECT(faults(at, false));
  // The addresses serve a device's memory, and the host's again.
  CUmemAllocationProp p = properties();
  p.location = device;
  CUmemGenericAllocationHandle other = 0;
  MUST(cuMemCreate(&other, size, &p, 0));
  MUST(cuMemMap(at, size, 0, other, 0));
  CUmemAccessDesc access{device, all};
  MUST(cuMemSetAccess(at, size, &access, 1));
  MUST(cuMemsetD32(at, 9, words));
  unsigned last = 0;
  MUST(cuMemcpyDtoH(&last, at + size - sizeof last, sizeof last));
  EXPECT(last == 9);
  MUST(cuMemUnmap(at, size));
  MUST(cuMemRelease(other));
  const CUmemGenericAllocationHandle fresh = make();
  open(map(fresh, at), all, all);
  EXPECT(all_are(of_host(at), 0));
  MUST(cuMemRelease(fresh));
  forget(at);
}

template <class T>
T told(CUpointer_attribute what, CUdeviceptr at) {
  T value{};
  MUST(cuPointerGetAttribute(&value, what, at));
  return value;
}

void answers_about_pointers() {
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory), inside = at + 4096;
  open(at, all, all);
  EXPECT(told<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == CU_MEMORYTYPE_HOST);
  EXPECT(told<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside) == 0);
  EXPECT(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside) == inside);
  EXPECT(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, inside) == inside);
  EXPECT(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == at);
  EXPECT(told<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside) == 2 * size);
  EXPECT(told<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inside) == nullptr);
  EXPECT(told<int>(CU_POINTER_ATTRIBUTE_MAPPED, inside) == 1);
  EXPECT(told<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside) == 0);
  EXPECT(told<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, inside) == 1);
  CUdeviceptr same = 0;
  MUST(cuMemHostGetDevicePointer(&same, of_host(inside), 0));
  EXPECT(same == at);  // of the mapping
  unsigned flags = 0, on = 1;
  MUST(cuMemHostGetFlags(&flags, of_host(inside)));
  EXPECT(flags == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuMemFree(at) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemRelease(memory));
  forget(at);
}

void words_by_turns() {
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory);
  open(at, all, all);
  volatile unsigned* const p = of_host(at);
  for (unsigned round = 1; round <= 16; round++) {
    answers<<<1, 1>>>(p, round);
    MUST(cudaGetLastError());
    for (int i = 16; i < 1024; i++) p[i] = round * 1000 + static_cast<unsigned>(i);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    p[0] = round;
    while (p[8] != round) {
    }
    for (int i = 16; i < 1024; i++) EXPECT(p[i] == round * 1000 + static_cast<unsigned>(i) + 1);
    MUST(cudaDeviceSynchronize());
  }
  MUST(cuMemRelease(memory));
  forget(at);
}

void copies() {
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory), twice = map(memory);
  open(at, all, all);
  open(twice, all, all);
  unsigned *there = nullptr, *pinned = nullptr;
  MUST(cudaMalloc(&there, size));
  MUST(cudaMallocHost(&pinned, size));
  std::vector<unsigned> here(words);
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // The host reads what a call that has returned has written, and a call reads what the host has written.
  for (unsigned i = 0; i < words; i++) here[i] = i;
  MUST(cudaMemcpy(of_host(at), here.data(), size, cudaMemcpyDefault));
  EXPECT(std::memcmp(of_host(at), here.data(), size) == 0);
  for (unsigned i = 0; i < words; i++) of_host(at)[i] = i * 3;
  MUST(cudaMemcpy(there, of_host(at), size, cudaMemcpyDefault));
  add<<<words / 256, 256>>>(there, words, 1);
  MUST(cudaMemcpy(of_host(at), there, size, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < words; i++) EXPECT(of_host(at)[i] == i * 3 + 1);
  MUST(cudaMemcpy(here.data(), of_host(twice), size, cudaMemcpyDefault));
  EXPECT(std::memcmp(of_host(at), here.data(), size) == 0);
  for (unsigned round = 1; round <= 0x11; round++) {
    MUST(cudaMemset(of_host(twice), static_cast<int>(round), size));
    EXPECT(all_are(of_host(at), round * 0x01010101));
  }
  MUST(cudaMemcpy(pinned, of_host(at), size, cudaMemcpyDefault));
  EXPECT(all_are(pinned, 0x11111111));

  // In streams: each step sees the one before.
  launch_add(at, 1, stream);
  MUST(cudaMemcpyAsync(there, of_host(twice), size, cudaMemcpyDefault, stream));
  add<<<words / 256, 256, 0, stream>>>(there, words, 1);
  MUST(cudaMemcpyAsync(of_host(at), there, size, cudaMemcpyDefault, stream));
  launch_add(twice, 1, stream);
  MUST(cudaMemcpyAsync(pinned, of_host(at), size, cudaMemcpyDefault, stream));
  MUST(cudaMemsetAsync(of_host(at), 0, size, stream));
  launch_add(at, 7, stream);
  MUST(cudaMemcpyAsync(of_host(at), pinned, size / 2, cudaMemcpyHostToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(all_are(pinned, 0x11111114));
  EXPECT(of_host(at)[0] == 0x11111114 && of_host(at)[words / 2] == 7);

  // Boxes.
  MUST(cudaMemset(of_host(at), 0, size));
  MUST(cudaMemcpy2D(of_host(at), 1024, pinned, 512, 512, 2048, cudaMemcpyDefault));
  EXPECT(of_host(at)[127] == 0x11111114 && of_host(at)[128] == 0 && of_host(at)[256] == 0x11111114);

  // A graph that reads and writes it, three times.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaMemset(of_host(at), 0, size));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  MUST(cudaMemcpyAsync(there, of_host(at), size, cudaMemcpyDefault, stream));
  add<<<words / 256, 256, 0, stream>>>(there, words, 2);
  MUST(cudaMemcpyAsync(of_host(twice), there, size, cudaMemcpyDefault, stream));
  launch_add(at, 1, stream);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(all_are(of_host(at), 9));
  for (unsigned i = 0; i < words; i++) of_host(at)[i] = 100;
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(all_are(of_host(twice), 103));

  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));

  // A node of the host's to the host's.
  cudaGraphNode_t node;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, of_host(at), of_host(twice) + words / 2, size / 2,
                                cudaMemcpyHostToHost));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (unsigned i = 0; i < words; i++) of_host(at)[i] = i;
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < words / 2; i++) EXPECT(of_host(at)[i] == words / 2 + i);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(there));
  MUST(cudaFreeHost(pinned));
  MUST(cuMemRelease(memory));
  forget(at);
  forget(twice);
}

/// A device's memory in the same range: what is said of both at once holds for each.
void beside_a_devices() {
  CUmemAllocationProp p = properties();
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle memory = make(), there = 0;
  MUST(cuMemCreate(&there, size, &p, 0));
  const CUdeviceptr at = map(memory), next = at + size;
  MUST(cuMemMap(next, size, 0, there, 0));
  const auto let_device = [&](CUdeviceptr to, std::size_t bytes, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location = p.location;
    access.flags = flags;
    MUST(cuMemSetAccess(to, bytes, &access, 1));
  };
  let_device(next, size, all);
  MUST(cuMemsetD8(next, 1, size));
  MUST(cuCtxSynchronize());  // a fill under way may need what is taken away
  let_device(at, 2 * size, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT(cuMemsetD8(next, 2, size) == CUDA_ERROR_INVALID_VALUE);
  let_device(at, 2 * size, all);
  MUST(cuMemsetD8(at, 3, size));
  MUST(cuMemsetD8(next, 4, size));
  unsigned last = 0;
  MUST(cuMemcpyDtoH(&last, next + size - sizeof last, sizeof last));
  EXPECT(last == 0x04040404);
  MUST(cuMemUnmap(at, 2 * size));
  MUST(cuMemRelease(memory));
  MUST(cuMemRelease(there));
  MUST(cuMemAddressFree(at, 2 * size));
}

/// The memory belongs to no context.
void outlives_a_reset() {
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory);
  open(at, all, all);
  launch_add(at, 5);
  MUST(cudaDeviceSynchronize());
  MUST(cudaDeviceReset());
  begin();
  EXPECT(of_host(at)[words - 1] == 5);
  launch_add(at, 1);
  MUST(cudaDeviceSynchronize());
  EXPECT(all_are(of_host(at), 6));
  MUST(cuMemRelease(memory));
  forget(at);
}

void refused() {
  CUmemGenericAllocationHandle made = 0;
  const CUmemAllocationProp p = properties();
  EXPECT(cuMemCreate(&made, size, &p, 0) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID) == -1);
}

void alone(channel&) {
  begin();
  if (!offered()) return refused();
  std::size_t granularity = 0;
  const CUmemAllocationProp p = properties();
  MUST(cuMemGetAllocationGranularity(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT(granularity != 0 && size % granularity == 0);
  wrong_ways();
  rights();
  answers_about_pointers();
  words_by_turns();
  copies();
  beside_a_devices();
  outlives_a_reset();
}

void nobody(channel&) {}

// One process makes the memory, the other opens it: one memory for both and for their devices.
void giver(channel& to) {
  begin();
  to.put(offered());
  if (!offered()) return;
  const CUmemGenericAllocationHandle memory = make();
  const CUdeviceptr at = map(memory);
  open(at, all, all);
  for (unsigned i = 0; i < words; i++) of_host(at)[i] = 5;
  int fd = -1;
  MUST(cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  to.put_descriptor(fd);
  EXPECT(::close(fd) == 0);
  volatile unsigned* const p = of_host(at);
  while (p[8] != 1) {
  }
  for (int i = 16; i < 1024; i++) EXPECT(p[i] == 6);
  launch_add(at, 1);
  MUST(cudaDeviceSynchronize());
  to.tell();
  to.hear();
  MUST(cuMemRelease(memory));
  forget(at);
  to.tell();
  to.hear();
}

void taker(channel& from) {
  begin();
  if (!from.take<bool>()) return;
  const int fd = from.take_descriptor();
  CUmemGenericAllocationHandle memory = 0;
  MUST(cuMemImportFromShareableHandle(&memory, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT(::close(fd) == 0);
  CUmemAllocationProp says{};
  MUST(cuMemGetAllocationPropertiesFromHandle(&says, memory));
  EXPECT(says.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && says.requestedHandleTypes == 0);
  const CUdeviceptr at = map(memory);
  open(at, all, all);
  answers<<<1, 1>>>(of_host(at), 1);
  MUST(cudaGetLastError());
  EXPECT(of_host(at)[words - 1] == 5);
  of_host(at)[0] = 1;
  from.hear();
  MUST(cudaDeviceSynchronize());
  EXPECT(of_host(at)[16] == 7 && of_host(at)[words - 1] == 6);
  from.tell();
  from.hear();
  // The one that made it has let go of it: it is ours still.
  launch_add(at, 1);
  MUST(cudaDeviceSynchronize());
  EXPECT(of_host(at)[words - 1] == 7);
  MUST(cuMemRelease(memory));
  forget(at);
  from.tell();
}

}  // namespace

int main(int count, char** values) {
  return play("host_ranges", {{"one process", alone, nobody}, {"two processes", giver, taker}}, count,
              values);
}
