// Frees memory while earlier work still uses it: that work must not write into the next allocation of the
// same memory, whichever stream uses that.
#include <cstring>

#include "../common.hh"

__global__ void write_late(int* to, int n, int value, int rounds) {
  unsigned x = value;
  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = x == 0 ? 0 : value;
}

namespace {

constexpr int slow = 300000;  // milliseconds, on a GPU and on our interpreter
constexpr int wrong = 0x0bad0bad;

struct stream {
  cudaStream_t s = nullptr;
  stream() { MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); }
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};

/// True if the next allocation got the same memory, so that the round has tested something.
bool device_memory(std::size_t bytes, cudaStream_t before, cudaStream_t after, int round) {
  const int n = static_cast<int>(bytes / sizeof(int));
  int *old = nullptr, *next = nullptr;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i * 3 + round;
  MUST(cudaMalloc(&old, bytes));
  write_late<<<1, 32, 0, before>>>(old, n, wrong, slow);
  MUST(cudaGetLastError());
  MUST(cudaFree(old));
  MUST(cudaMalloc(&next, bytes));
  MUST(cudaMemcpyAsync(next, in.data(), bytes, cudaMemcpyHostToDevice, after));
  MUST(cudaStreamSynchronize(after));
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy(out.data(), next, bytes, cudaMemcpyDeviceToHost));
  EXPECT(in == out);
  MUST(cudaFree(next));
  return next == old;
}

bool page_locked_memory(std::size_t bytes, cudaStream_t before, int round) {
  const int n = static_cast<int>(bytes / sizeof(int));
  int *old = nullptr, *next = nullptr, *there = nullptr;
  MUST(cudaHostAlloc(&old, bytes, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer(&there, old, 0));
  write_late<<<1, 32, 0, before>>>(there, n, wrong, slow);
  MUST(cudaGetLastError());
  MUST(cudaFreeHost(old));
  MUST(cudaHostAlloc(&next, bytes, cudaHostAllocMapped));
  for (int i = 0; i < n; ++i) next[i] = i * 5 + round;
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(next[i] == i * 5 + round);
  MUST(cudaFreeHost(next));
  return next == old;
}

bool managed_memory(std::size_t bytes, cudaStream_t before, int round) {
  const int n = static_cast<int>(bytes / sizeof(int));
  int *old = nullptr, *next = nullptr;
  MUST(cudaMallocManaged(&old, bytes));
  write_late<<<1, 32, 0, before>>>(old, n, wrong, slow);
  MUST(cudaGetLastError());
  MUST(cudaFree(old));
  MUST(cudaMallocManaged(&next, bytes));
  for (int i = 0; i < n; ++i) next[i] = i * 7 + round;
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(next[i] == i * 7 + round);
  MUST(cudaFree(next));
  return next == old;
}

/// Copies under way read and write memory that is freed after they were enqueued.
void copies_under_way(cudaStream_t s) {
  constexpr std::size_t bytes = 8 << 20;
  int *device = nullptr, *from = nullptr, *to = nullptr;
  std::vector<int> seen(bytes / sizeof(int));
  MUST(cudaMallocHost(&to, bytes));
  for (int round = 1; round < 4; ++round) {
    MUST(cudaMalloc(&device, bytes));
    MUST(cudaMallocHost(&from, bytes));
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) from[i] = static_cast<int>(i) * round;
    MUST(cudaMemcpyAsync(device, from, bytes, cudaMemcpyHostToDevice, s));
    MUST(cudaMemcpyAsync(to, device, bytes, cudaMemcpyDeviceToHost, s));
    MUST(cudaFreeHost(from));
    MUST(cudaFree(device));
    MUST(cudaStreamSynchronize(s));
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) EXPECT(to[i] == static_cast<int>(i) * round);
  }
  MUST(cudaFreeHost(to));
}

}  // namespace

int main() {
  const stream before, after;
  int again = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes :
         {std::size_t{256}, std::size_t{60000}, std::size_t{1} << 20, std::size_t{8} << 20})
      again += device_memory(bytes, before, after, round);
    for (std::size_t bytes : {std::size_t{256}, std::size_t{200000}}) {
      again += page_locked_memory(bytes, before, round);
      again += managed_memory(bytes, before, round);
    }
  }
  copies_under_way(before);
  std::printf("%d blocks were given again at once\n", again);
  return pass("freed_memory");
}
