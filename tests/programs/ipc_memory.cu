// Two processes share device memory by IPC: handles of memory and of events, as torch.multiprocessing passes
// them (the handle of an allocation, an offset into it, an event), forked and spawned; what is counted, what
// outlives what, and what an event between processes orders.
#include <cuda.h>

#include "processes.hh"

__global__ void fill(unsigned* at, int count, unsigned round) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) at[i] = round * 7919u + i;
}

/// Takes its time before it writes: what does not wait for it reads the old value.
__global__ void fill_late(unsigned* at, int count, unsigned round, int turns) {
  unsigned x = round + 1;
  for (int i = 0; i < turns; i++) x = x * 1664525u + 1013904223u;
  for (int i = 0; i < count; i++) at[i] = round * 7919u + i + (x == 1 ? 1 : 0);
}

__global__ void add_up(const unsigned* at, int count, unsigned long long* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(sum, static_cast<unsigned long long>(at[i]));
}

constexpr int words = 100000, rounds = 12;
constexpr std::size_t offset = 3 << 20;  // of what is shared in its allocation

unsigned long long expected_sum(unsigned round) {
  unsigned long long sum = 0;
  for (int i = 0; i < words; i++) sum += round * 7919u + i;
  return sum;
}

struct parcel {
  cudaIpcMemHandle_t memory;
  std::size_t offset;
  cudaIpcEventHandle_t event;
};

cudaEvent_t make_event() {
  cudaEvent_t made;
  MUST(cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventInterprocess));
  return made;
}

unsigned first_word(const void* at) {
  unsigned value = 0;
  MUST(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

// --- producer and consumer

void produce(channel& to) {
  unsigned char* base;
  MUST(cudaMalloc(&base, 8 << 20));
  unsigned* data = reinterpret_cast<unsigned*>(base + offset);
  cudaEvent_t ready = make_event(), read;
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  parcel p;
  MUST(cudaIpcGetMemHandle(&p.memory, base));
  p.offset = offset;
  MUST(cudaIpcGetEventHandle(&p.event, ready));
  to.put(p);
  MUST(cudaIpcOpenEventHandle(&read, to.take<cudaIpcEventHandle_t>()));
  for (unsigned round = 0; round < rounds; round++) {
    if (round > 0) {
      to.hear();  // the consumer has recorded that it has read
      MUST(cudaStreamWaitEvent(stream, read, 0));
    }
    fill<<<(words + 255) / 256, 256, 0, stream>>>(data, words, round);
    MUST(cudaGetLastError());
    MUST(cudaEventRecord(ready, stream));
    to.tell();
  }
  to.hear();
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaEventDestroy(ready));
  MUST(cudaEventDestroy(read));
  MUST(cudaFree(base));
}

void consume(channel& to) {
  const parcel p = to.take<parcel>();
  void* base;
  MUST(cudaIpcOpenMemHandle(&base, p.memory, cudaIpcMemLazyEnablePeerAccess));
  const unsigned* data = reinterpret_cast<const unsigned*>(static_cast<unsigned char*>(base) + p.offset);
  cudaEvent_t ready, read = make_event();
  MUST(cudaIpcOpenEventHandle(&ready, p.event));
  cudaIpcEventHandle_t own;
  MUST(cudaIpcGetEventHandle(&own, read));
  to.put(own);
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  unsigned long long *sum, got;
  MUST(cudaMalloc(&sum, sizeof *sum));
  for (unsigned round = 0; round < rounds; round++) {
    to.hear();
    MUST(cudaStreamWaitEvent(stream, ready, 0));
    MUST(cudaMemsetAsync(sum, 0, sizeof *sum, stream));
    add_up<<<(words + 255) / 256, 256, 0, stream>>>(data, words, sum);
    MUST(cudaGetLastError());
    MUST(cudaEventRecord(read, stream));
    to.tell();
    MUST(cudaMemcpyAsync(&got, sum, sizeof got, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(got == expected_sum(round));
  }
  MUST(cudaIpcCloseMemHandle(base));
}

// --- an event orders a slow kernel of one process before a copy of the other

constexpr int late_words = 64;

void record_late(channel& to) {
  unsigned* data;
  MUST(cudaMalloc(&data, 4 << 20));
  MUST(cudaMemset(data, 0, 4 << 20));
  MUST(cudaDeviceSynchronize());
  cudaEvent_t ready = make_event();
  parcel p{};
  MUST(cudaIpcGetMemHandle(&p.memory, data));
  MUST(cudaIpcGetEventHandle(&p.event, ready));
  to.put(p);
  for (unsigned round = 1; round <= 4; round++) {
    fill_late<<<1, 1>>>(data, late_words, round, 300000);
    MUST(cudaEventRecord(ready, 0));
    to.tell();  // at once: the kernel runs
    to.hear();
  }
  MUST(cudaFree(data));
}

void wait_for_late(channel& to) {
  const parcel p = to.take<parcel>();
  void* data;
  MUST(cudaIpcOpenMemHandle(&data, p.memory, cudaIpcMemLazyEnablePeerAccess));
  cudaEvent_t ready;
  MUST(cudaIpcOpenEventHandle(&ready, p.event));
  for (unsigned round = 1; round <= 4; round++) {
    to.hear();
    if (round % 2) {
      MUST(cudaStreamWaitEvent(0, ready, 0));
    } else {
      MUST(cudaEventSynchronize(ready));
    }
    EXPECT(first_word(data) == round * 7919u);
    MUST(cudaEventQuery(ready));
    to.tell();
  }
  MUST(cudaIpcCloseMemHandle(data));
}

// --- a copy that has been waited for is there for everybody

void copy_and_tell(channel& to) {
  unsigned* data;
  MUST(cudaMalloc(&data, 4 << 20));
  cudaIpcMemHandle_t handle;
  MUST(cudaIpcGetMemHandle(&handle, data));
  to.put(handle);
  constexpr std::size_t count = 1 << 20;
  std::vector<unsigned> own(count);
  unsigned* pinned;
  MUST(cudaMallocHost(&pinned, count * 4));
  for (unsigned round = 1; round <= 50; round++) {
    unsigned* values = round % 2 ? own.data() : pinned;
    values[0] = values[count - 1] = round;
    MUST(cudaMemcpy(data, values, count * 4, cudaMemcpyHostToDevice));
    // Of pageable memory a driver may return while its staging memory is still on the way.
    if (values != pinned) MUST(cudaDeviceSynchronize());
    to.tell();
    to.hear();
  }
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(data));
}

void read_when_told(channel& to) {
  void* data;
  MUST(cudaIpcOpenMemHandle(&data, to.take<cudaIpcMemHandle_t>(), cudaIpcMemLazyEnablePeerAccess));
  for (unsigned round = 1; round <= 50; round++) {
    to.hear();
    EXPECT(first_word(static_cast<char*>(data) + (4 << 20) - 4) == round);
    to.tell();
  }
  MUST(cudaIpcCloseMemHandle(data));
}

// --- the books: same handle, same pointer, counted

struct four {
  CUipcMemHandle base, inside, small, other_small;
};

void share_four(channel& to) {
  CUdeviceptr large, small, other;
  MUST(cudaFree(nullptr));
  MUST(cuMemAlloc(&large, 4 << 20));
  MUST(cuMemAlloc(&small, 1000));
  MUST(cuMemAlloc(&other, 1000));
  MUST(cuMemsetD32(large, 42, 1 << 20));
  MUST(cuMemsetD32(small, 43, 250));
  MUST(cuMemsetD32(other, 44, 250));
  MUST(cuCtxSynchronize());
  four h;
  CUipcMemHandle again;
  MUST(cuIpcGetMemHandle(&h.base, large));
  MUST(cuIpcGetMemHandle(&again, large));
  EXPECT(std::memcmp(&again, &h.base, sizeof again) == 0);
  MUST(cuIpcGetMemHandle(&h.inside, large + (1 << 20)));
  EXPECT(std::memcmp(&h.inside, &h.base, sizeof again) == 0);
  MUST(cuIpcGetMemHandle(&h.small, small));
  MUST(cuIpcGetMemHandle(&h.other_small, other));
  EXPECT(std::memcmp(&h.small, &h.other_small, sizeof again) != 0);
  unsigned capable = 9;
  MUST(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, large));
  EXPECT(capable == 1);
  CUdeviceptr mine, pooled, managed;
  EXPECT(cuIpcOpenMemHandle(&mine, h.base, 1) == CUDA_ERROR_INVALID_CONTEXT);  // one's own
  EXPECT(cuIpcCloseMemHandle(large) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcGetMemHandle(nullptr, large) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcGetMemHandle(&again, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcGetMemHandle(&again, 0x123456789000) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemAllocAsync(&pooled, 1 << 20, 0));
  MUST(cuStreamSynchronize(0));
  EXPECT(cuIpcGetMemHandle(&again, pooled) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  EXPECT(cuIpcGetMemHandle(&again, managed) == CUDA_ERROR_INVALID_VALUE);
  to.put(h);
  to.hear();
  MUST(cuMemFree(large));  // while the other side has it open
  EXPECT(cuIpcGetMemHandle(&again, large) == CUDA_ERROR_INVALID_VALUE);
  to.tell();
  to.hear();
}

void open_four(channel& to) {
  MUST(cudaFree(nullptr));
  const four h = to.take<four>();
  CUdeviceptr base, again, inside, small, other, none;
  EXPECT(cuIpcOpenMemHandle(&none, h.base, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenMemHandle(&none, h.base, 2) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenMemHandle(nullptr, h.base, 1) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuIpcOpenMemHandle(&base, h.base, 1));
  MUST(cuIpcOpenMemHandle(&again, h.base, 1));
  MUST(cuIpcOpenMemHandle(&inside, h.inside, 1));
  EXPECT(again == base && inside == base);
  MUST(cuIpcOpenMemHandle(&small, h.small, 1));
  MUST(cuIpcOpenMemHandle(&other, h.other_small, 1));
  CUdeviceptr begin;
  std::size_t size;
  MUST(cuMemGetAddressRange(&begin, &size, base + 4096));
  EXPECT(begin == base && size == 4 << 20);
  MUST(cuMemGetAddressRange(&begin, &size, small));
  EXPECT(begin == small && size == 1000);
  unsigned value = 9;
  MUST(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, base));
  EXPECT(value == 0);
  MUST(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base));
  EXPECT(value == CU_MEMORYTYPE_DEVICE);
  EXPECT(first_word(reinterpret_cast<void*>(base)) == 42);
  EXPECT(first_word(reinterpret_cast<void*>(small + 996)) == 43);
  EXPECT(first_word(reinterpret_cast<void*>(other)) == 44);
  CUipcMemHandle onward;
  EXPECT(cuIpcGetMemHandle(&onward, base) == CUDA_ERROR_INVALID_VALUE);  // only its maker shares it
  EXPECT(cuMemFree(base) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcCloseMemHandle(base + 4096) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcCloseMemHandle(0) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuIpcCloseMemHandle(base));
  MUST(cuIpcCloseMemHandle(base));
  EXPECT(first_word(reinterpret_cast<void*>(base)) == 42);
  to.tell();
  to.hear();
  EXPECT(first_word(reinterpret_cast<void*>(base + (4 << 20) - 4)) == 42);  // freed there, alive here
  MUST(cuIpcCloseMemHandle(base));
  EXPECT(cuIpcCloseMemHandle(base) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuIpcOpenMemHandle(&none, h.base, 1) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuIpcCloseMemHandle(small));
  EXPECT(first_word(reinterpret_cast<void*>(other)) == 44);
  MUST(cuIpcCloseMemHandle(other));
  to.tell();
}

// --- events: codes

void share_events(channel& to) {
  MUST(cudaFree(nullptr));
  CUevent event, plain, none;
  CUipcEventHandle handle, again;
  EXPECT(cuEventCreate(&none, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  EXPECT(cuIpcGetEventHandle(&handle, plain) == CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuIpcGetEventHandle(nullptr, event) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuIpcGetEventHandle(&handle, event));
  MUST(cuIpcGetEventHandle(&again, event));
  EXPECT(std::memcmp(&again, &handle, sizeof handle) == 0);
  EXPECT(cuIpcOpenEventHandle(&none, handle) == CUDA_ERROR_INVALID_CONTEXT);
  to.put(handle);
  to.hear();
  MUST(cuEventSynchronize(event));  // the other side has recorded it
  MUST(cuEventQuery(event));
  MUST(cuEventDestroy(event));
  to.tell();
  to.hear();
}

void open_events(channel& to) {
  MUST(cudaFree(nullptr));
  const CUipcEventHandle handle = to.take<CUipcEventHandle>();
  CUevent event, second;
  MUST(cuIpcOpenEventHandle(&event, handle));
  MUST(cuIpcOpenEventHandle(&second, handle));
  EXPECT(event != second);
  MUST(cuEventQuery(event));  // never recorded
  float ms;
  EXPECT(cuEventElapsedTime(&ms, event, event) == CUDA_ERROR_INVALID_HANDLE);
  CUipcEventHandle onward;
  EXPECT(cuIpcGetEventHandle(&onward, event) == CUDA_ERROR_INVALID_HANDLE);
  MUST(cuEventRecord(event, 0));
  MUST(cuEventSynchronize(second));
  to.tell();
  to.hear();
  MUST(cuEventQuery(event));  // its maker has destroyed it
  MUST(cuEventRecord(event, 0));
  MUST(cuStreamWaitEvent(0, event, 0));
  MUST(cuStreamSynchronize(0));
  MUST(cuEventDestroy(event));
  to.tell();
}

// --- deaths

void share_and_die(channel& to) {
  void* data;
  MUST(cudaMalloc(&data, 4 << 20));
  MUST(cudaMemset(data, 0x11, 4 << 20));
  MUST(cudaDeviceSynchronize());
  cudaIpcMemHandle_t handle;
  MUST(cudaIpcGetMemHandle(&handle, data));
  to.put(handle);
  to.hear();
  ::kill(::getpid(), SIGKILL);
}

void outlive_the_maker(channel& to) {
  void* data;
  MUST(cudaIpcOpenMemHandle(&data, to.take<cudaIpcMemHandle_t>(), cudaIpcMemLazyEnablePeerAccess));
  to.tell();
  to.hear_end();
  ::usleep(1500000);  // nothing of the maker is left by then
  EXPECT(first_word(static_cast<char*>(data) + (4 << 20) - 4) == 0x11111111);
  MUST(cudaMemset(data, 0x22, 4 << 20));
  EXPECT(first_word(data) == 0x22222222);
  MUST(cudaIpcCloseMemHandle(data));
}

void outlive_the_taker(channel& to) {
  unsigned* data;
  MUST(cudaMalloc(&data, 4 << 20));
  fill<<<1, 256>>>(data, 256, 3);
  MUST(cudaDeviceSynchronize());
  cudaIpcMemHandle_t handle;
  MUST(cudaIpcGetMemHandle(&handle, data));
  to.put(handle);
  to.hear_end();
  ::usleep(1500000);
  EXPECT(first_word(data) == 3 * 7919u);
  fill<<<1, 256>>>(data, 256, 4);
  EXPECT(first_word(data + 1) == 4 * 7919u + 1);
  MUST(cudaFree(data));
}

void open_and_die(channel& to) {
  void* data;
  MUST(cudaIpcOpenMemHandle(&data, to.take<cudaIpcMemHandle_t>(), cudaIpcMemLazyEnablePeerAccess));
  EXPECT(first_word(data) == 3 * 7919u);
  ::kill(::getpid(), SIGKILL);
}

int main(int count, char** values) {
  return play("ipc_memory",
              {{"pipeline_forked", produce, consume},
               {"pipeline_spawned", produce, consume, true},
               {"event_orders", record_late, wait_for_late},
               {"copies_are_there", copy_and_tell, read_when_told},
               {"books", share_four, open_four},
               {"event_codes", share_events, open_events},
               {"maker_dies", share_and_die, outlive_the_maker, false, true, false},
               {"taker_dies", outlive_the_taker, open_and_die, false, false, true}},
              count, values);
}
