// Host memory that kernels read and write: pinned and registered, small and large, its address given as a
// parameter, hidden in a struct or in a table on the device, changed by both sides in turn and while a kernel
// runs, learnt of by every way to wait; and the system's read() into it.
#include <fcntl.h>
#include <unistd.h>
#include <cstring>

#include "common.hh"

constexpr int n = 1 << 14;

struct job {
  const int* in;
  int* out;
  int by;
};

__global__ void scale(job j) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) j.out[i] = j.in[i] * j.by;
}

__global__ void scale_of_table(const job* table, int which) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) table[which].out[i] = table[which].in[i] * table[which].by;
}

struct node {
  node* next;
  int value;
};

__global__ void walk(node* at, int* sum) {
  *sum = 0;
  for (; at; at = at->next) *sum += at->value, at->value = -at->value;
}

/// Until the host has written there.
__global__ void wait_for_number(volatile int* number, int* seen, long long patience) {
  const long long begin = clock64();
  while (*number == 0) {
    if (clock64() - begin > patience) return;
  }
  *seen = *number;
}

void filled(int* to, int from) {
  for (int i = 0; i < n; i++) to[i] = from + i;
}
bool is(const int* at, int from, int by) {
  for (int i = 0; i < n; i++) {
    if (at[i] != (from + i) * by) return false;
  }
  return true;
}

void by_every_wait() {
  int *in, *out;
  MUST(cudaHostAlloc(&in, n * sizeof(int), cudaHostAllocMapped));
  MUST(cudaHostAlloc(&out, n * sizeof(int), cudaHostAllocMapped));
  cudaStream_t stream;
  cudaEvent_t event;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 1; round < 13; round++) {
    filled(in, round);
    scale<<<n / 256, 256, 0, stream>>>(job{in, out, round});
    MUST(cudaEventRecord(event, stream));
    if (round % 4 == 0) MUST(cudaDeviceSynchronize());
    if (round % 4 == 1) MUST(cudaStreamSynchronize(stream));
    if (round % 4 == 2) MUST(cudaEventSynchronize(event));
    if (round % 4 == 3) {
      while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      }
      MUST(cudaStreamQuery(stream));
    }
    EXPECT(is(out, round, round));
  }
  // A copy that waits has waited for the kernel before it.
  int *device, small;
  MUST(cudaMalloc(&device, sizeof small));
  filled(in, 5);
  scale<<<n / 256, 256>>>(job{in, out, 6});
  MUST(cudaMemcpy(&small, device, sizeof small, cudaMemcpyDeviceToHost));
  EXPECT(is(out, 5, 6));
  MUST(cudaFree(device));
  MUST(cudaEventDestroy(event));
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFreeHost(in));
  MUST(cudaFreeHost(out));
}

/// A kernel that runs sees what the host has written before it asks or waits.
void while_it_runs() {
  int *number, *seen;
  MUST(cudaHostAlloc(&number, sizeof *number, cudaHostAllocMapped));
  MUST(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
  for (const bool asks : {true, false}) {
    *number = *seen = 0;
    wait_for_number<<<1, 1>>>(number, seen, 20'000'000'000ll);
    EXPECT(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    *number = 5;
    while (asks && cudaStreamQuery(nullptr) == cudaErrorNotReady) {
    }
    MUST(cudaDeviceSynchronize());
    EXPECT(*seen == 5);
  }
  MUST(cudaFreeHost(number));
  MUST(cudaFreeHost(seen));
}

void hidden_in_a_table() {
  int *in, *out;
  job *table, host[3];
  MUST(cudaMallocHost(&in, n * sizeof(int)));
  MUST(cudaMallocHost(&out, n * sizeof(int)));
  MUST(cudaMalloc(&table, sizeof host));
  memset(host, 0, sizeof host);
  host[1] = job{in, out, 3};
  MUST(cudaMemcpy(table, host, sizeof host, cudaMemcpyHostToDevice));
  filled(in, 7);
  scale_of_table<<<n / 256, 256>>>(table, 1);
  MUST(cudaDeviceSynchronize());
  EXPECT(is(out, 7, 3));
  MUST(cudaFree(table));
  MUST(cudaFreeHost(in));
  MUST(cudaFreeHost(out));
}

/// Only the first node's address is ever given to CUDA.
void linked_list() {
  constexpr int nodes = 50;
  node* list[nodes];
  int* sum;
  MUST(cudaMallocHost(&sum, sizeof(int)));
  for (int i = 0; i < nodes; i++) MUST(cudaMallocHost(&list[i], i % 10 == 0 ? 100000 : sizeof(node)));
  for (int i = 0; i < nodes; i++) *list[i] = {i + 1 < nodes ? list[i + 1] : nullptr, i};
  walk<<<1, 1>>>(list[0], sum);
  MUST(cudaDeviceSynchronize());
  EXPECT(*sum == nodes * (nodes - 1) / 2);
  for (int i = 0; i < nodes; i++) EXPECT(list[i]->value == -i);
  for (node* at : list) MUST(cudaFreeHost(at));
  MUST(cudaFreeHost(sum));
}

void registered() {
  std::vector<int> own(n + 100);  // neither begins nor ends at a page
  int* host = own.data() + 13;
  int* there = nullptr;
  MUST(cudaHostRegister(host, n * sizeof(int), cudaHostRegisterMapped));
  EXPECT(cudaHostRegister(host, 64, cudaHostRegisterMapped) == cudaErrorHostMemoryAlreadyRegistered);
  cudaGetLastError();
  MUST(cudaHostGetDevicePointer(&there, host, 0));
  own[12] = own[n + 13] = 4711;
  filled(host, 5);
  scale<<<n / 256, 256>>>(job{there, there, 2});
  MUST(cudaDeviceSynchronize());
  EXPECT(is(host, 5, 2) && own[12] == 4711 && own[n + 13] == 4711);
  int* device;
  MUST(cudaMalloc(&device, n * sizeof(int)));
  scale<<<n / 256, 256>>>(job{there, there, 3});
  MUST(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice));  // behind the kernel
  std::vector<int> back(n);
  MUST(cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(is(back.data(), 5, 6));
  MUST(cudaMemset(there, 0, n * sizeof(int)));
  MUST(cudaDeviceSynchronize());
  EXPECT(host[0] == 0 && host[n - 1] == 0);
  MUST(cudaHostUnregister(host));
  EXPECT(cudaHostUnregister(host) == cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
  MUST(cudaFree(device));
}

/// Copies from and to memory that a kernel has just written.
void copies_in_order() {
  int *host, *device;
  MUST(cudaMallocHost(&host, n * sizeof(int)));
  MUST(cudaMalloc(&device, n * sizeof(int)));
  filled(host, 1);
  scale<<<n / 256, 256>>>(job{host, host, 4});
  MUST(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice));
  scale<<<n / 256, 256>>>(job{device, device, 5});
  MUST(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(is(host, 1, 20));
  cudaPointerAttributes about;
  MUST(cudaPointerGetAttributes(&about, host + 3));
  EXPECT(about.type == cudaMemoryTypeHost && about.devicePointer == host + 3 &&
         about.hostPointer == host + 3);
  MUST(cudaFree(device));
  MUST(cudaFreeHost(host));
}

/// The kernel reads a file's bytes that the system put straight into pinned memory.
void system_calls() {
  char name[] = "/tmp/mapped_memory_XXXXXX";
  const int file = mkstemp(name);
  EXPECT(file >= 0);
  unlink(name);
  std::vector<int> content(n);
  filled(content.data(), 9);
  const ssize_t bytes = n * sizeof(int);
  EXPECT(write(file, content.data(), bytes) == bytes);
  int *in, *out;
  MUST(cudaMallocHost(&in, bytes));
  MUST(cudaMallocHost(&out, bytes));
  scale<<<n / 256, 256>>>(job{in, out, 1});  // visible to kernels before the system writes to it
  MUST(cudaDeviceSynchronize());
  EXPECT(pread(file, in, bytes, 0) == bytes);
  scale<<<n / 256, 256>>>(job{in, out, 6});
  MUST(cudaDeviceSynchronize());
  EXPECT(is(out, 9, 6));
  EXPECT(pwrite(file, out, bytes, 0) == bytes);
  EXPECT(pread(file, content.data(), bytes, 0) == bytes);
  EXPECT(is(content.data(), 9, 6));
  close(file);
  MUST(cudaFreeHost(in));
  MUST(cudaFreeHost(out));
}

/// Many blocks, and a great one of which little is used.
void sparse(std::size_t bytes) {
  std::vector<int*> blocks(1000);
  for (int*& b : blocks) MUST(cudaMallocHost(&b, 5000));
  int* great;
  MUST(cudaMallocHost(&great, bytes));
  for (std::size_t at = 0; at < bytes; at += bytes / 16) great[at / sizeof(int)] = static_cast<int>(at >> 20);
  int* device;
  MUST(cudaMalloc(&device, n * sizeof(int)));
  filled(great + 1024, 3);
  MUST(cudaMemcpyAsync(device, great + 1024, n * sizeof(int), cudaMemcpyHostToDevice));
  scale<<<n / 256, 256>>>(job{device, device, 2});
  MUST(cudaMemcpyAsync(great + 65536, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  MUST(cudaDeviceSynchronize());
  EXPECT(is(great + 65536, 3, 2));
  for (std::size_t at = bytes / 16; at < bytes; at += bytes / 16) {
    EXPECT(great[at / sizeof(int)] == static_cast<int>(at >> 20));
  }
  MUST(cudaFree(device));
  MUST(cudaFreeHost(great));
  for (int* b : blocks) MUST(cudaFreeHost(b));
}

int main(int count, char** values) {
  int can = 0;
  MUST(cudaDeviceGetAttribute(&can, cudaDevAttrCanMapHostMemory, 0));
  EXPECT(can == 1);
  by_every_wait();
  while_it_runs();
  hidden_in_a_table();
  linked_list();
  registered();
  copies_in_order();
  system_calls();
  sparse(static_cast<std::size_t>(argument(count, values, 1, 1024)) << 20);
  return pass("mapped_memory");
}
