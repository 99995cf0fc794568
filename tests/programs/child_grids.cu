// Kernels that launch kernels: order in their streams, the tail, recursion, copies and memory of the device
// runtime, and the errors that it reports. Compiled with -rdc=true, so the runtime's device library is part
// of the program.
#include "common.hh"

namespace {

struct list {
  unsigned count;
  unsigned items[200];
  __device__ void add(unsigned v) { items[atomicAdd(&count, 1u)] = v; }
};

__global__ void note(list* to, unsigned value) { to->add(value); }

// Launches itself for both halves; the sum covers all launches.
__global__ void sum_of(const unsigned* from, unsigned n, unsigned long long* sum) {
  if (n <= 64) {
    unsigned long long mine = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) mine += from[i];
    atomicAdd(sum, mine);
    return;
  }
  if (threadIdx.x > 1) return;
  const unsigned half = n / 2;
  if (threadIdx.x == 0) sum_of<<<1, 32>>>(from, half, sum);
  if (threadIdx.x == 1) sum_of<<<1, 32>>>(from + half, n - half, sum);
}

__global__ void in_order(list* to) {
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(to, 90);
  for (unsigned v = 1; v <= 20; ++v) note<<<1, 1>>>(to, v);
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(to, 91);
}

__global__ void in_streams(list* to, unsigned* codes) {
  cudaStream_t s;
  codes[0] = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  note<<<1, 3, 0, s>>>(to, 5);
  note<<<2, 1, 0, cudaStreamFireAndForget>>>(to, 6);
  codes[1] = cudaStreamDestroy(s);
  codes[2] = cudaGetLastError();
}

__global__ void copies(unsigned* to, const unsigned* from, unsigned n, unsigned* codes) {
  codes[0] = cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
  codes[1] = cudaMemsetAsync(to + n, 0, n * sizeof *to, cudaStreamTailLaunch);
  void* mine = nullptr;
  codes[2] = cudaMalloc(&mine, 1000);
  codes[3] = mine != nullptr;
  codes[4] = cudaFree(mine);
}

__global__ void wrong(list* to, unsigned* codes) {
  note<<<1, 4000>>>(to, 1);
  codes[2 * threadIdx.x] = cudaPeekAtLastError();
  codes[2 * threadIdx.x + 1] = cudaGetLastError();
  note<<<1, 1>>>(to, 2);
  codes[8 + threadIdx.x] = cudaGetLastError();
}

template <class T>
T* fresh(unsigned n = 1) {
  T* made = nullptr;
  MUST(cudaMalloc(&made, n * sizeof(T)));
  MUST(cudaMemset(made, 0, n * sizeof(T)));
  return made;
}

list read(const list* from) {
  list out;
  MUST(cudaMemcpy(&out, from, sizeof out, cudaMemcpyDeviceToHost));
  return out;
}

std::vector<unsigned> read(const unsigned* from, unsigned n) {
  std::vector<unsigned> out(n);
  MUST(cudaMemcpy(out.data(), from, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return out;
}

}  // namespace

int main() {
  cudaFuncAttributes about{};
  MUST(cudaFuncGetAttributes(&about, note));
  EXPECT(about.ptxVersion >= 50 && about.ptxVersion <= 90);  // the program's, not that of the device library

  list* noted = fresh<list>();
  in_order<<<1, 1>>>(noted);
  MUST(cudaDeviceSynchronize());
  list seen = read(noted);
  EXPECT(seen.count == 22);
  for (unsigned v = 1; v <= 20; ++v) EXPECT(seen.items[v - 1] == v);
  EXPECT(seen.items[20] == 90 && seen.items[21] == 91);

  const unsigned n = 100000;
  std::vector<unsigned> numbers_(n);
  unsigned long long expected = 0, sum = 0;
  numbers random;
  for (unsigned& x : numbers_) expected += x = random.next() >> 8;
  unsigned* data = fresh<unsigned>(n);
  auto* total = fresh<unsigned long long>();
  MUST(cudaMemcpy(data, numbers_.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  sum_of<<<1, 32>>>(data, n, total);
  // Later work in the stream waits for everything that it has launched.
  MUST(cudaMemcpyAsync(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
  MUST(cudaStreamSynchronize(nullptr));
  EXPECT(sum == expected);

  unsigned* codes = fresh<unsigned>(16);
  MUST(cudaMemset(noted, 0, sizeof(list)));
  in_streams<<<1, 1>>>(noted, codes);
  MUST(cudaDeviceSynchronize());
  seen = read(noted);
  unsigned fives = 0, sixes = 0;
  for (unsigned i = 0; i < seen.count; ++i) fives += seen.items[i] == 5, sixes += seen.items[i] == 6;
  EXPECT(seen.count == 5 && fives == 3 && sixes == 2);
  for (const unsigned code : read(codes, 3)) EXPECT(code == 0);

  unsigned* copied = fresh<unsigned>(2 * n + 1);
  MUST(cudaMemset(copied + n, 0x5a, (n + 1) * sizeof *copied));
  copies<<<1, 1>>>(copied, data, n, codes);
  MUST(cudaDeviceSynchronize());
  EXPECT(read(copied, n) == numbers_);
  for (const unsigned x : read(copied + n, n)) EXPECT(x == 0);
  EXPECT(read(copied + 2 * n, 1)[0] == 0x5a5a5a5a);
  EXPECT((read(codes, 5) == std::vector<unsigned>{0, 0, 0, 1, 0}));

  MUST(cudaMemset(noted, 0, sizeof(list)));
  wrong<<<1, 4>>>(noted, codes);
  MUST(cudaDeviceSynchronize());
  const std::vector<unsigned> told = read(codes, 12);
  for (unsigned i = 0; i < 8; ++i) EXPECT(told[i] == cudaErrorInvalidConfiguration);
  for (unsigned i = 8; i < 12; ++i) EXPECT(told[i] == cudaSuccess);
  seen = read(noted);
  EXPECT(seen.count == 4 && seen.items[0] == 2);
  return pass("child_grids");
}
