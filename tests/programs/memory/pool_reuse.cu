// Temporary memory as programs use it: allocated in a stream's order, used, freed in that order, many times.
// The contents stay intact, streams do not use each other's memory, and the pool's accounts always match the
// program's.
#include "../common.hh"

constexpr int n = 1 << 12, rounds = 500;

__global__ void fill(int* to, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = value + i;
}

__global__ void add(int* to, const int* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] += from[i];
}

std::uint64_t used(cudaMemPool_t pool) {
  std::uint64_t value = ~0ull;
  MUST(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  return value;
}

int main() {
  cudaStream_t streams[2];
  int* sums[2];
  cudaMemPool_t pool;
  MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
  for (int s = 0; s < 2; s++) {
    MUST(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    MUST(cudaMalloc(&sums[s], n * sizeof(int)));
    MUST(cudaMemset(sums[s], 0, n * sizeof(int)));
  }
  // By now the driver has loaded what it loads once.
  fill<<<n / 256, 256>>>(sums[0], 0);
  add<<<n / 256, 256>>>(sums[0], sums[0]);
  MUST(cudaMemset(sums[0], 0, n * sizeof(int)));
  MUST(cudaDeviceSynchronize());
  const std::uint64_t before = used(pool);
  for (int round = 0; round < rounds; round++) {
    for (int s = 0; s < 2; s++) {
      int *a, *b;
      MUST(cudaMallocAsync(&a, n * sizeof(int), streams[s]));
      MUST(cudaMallocAsync(&b, n * sizeof(int) + 64, streams[s]));
      EXPECT(a != b);
      fill<<<n / 256, 256, 0, streams[s]>>>(a, round);
      MUST(cudaMemcpyAsync(b, a, n * sizeof(int), cudaMemcpyDeviceToDevice, streams[s]));
      MUST(cudaFreeAsync(a, streams[s]));
      add<<<n / 256, 256, 0, streams[s]>>>(sums[s], b);
      MUST(cudaFreeAsync(b, streams[s]));
    }
  }
  for (int s = 0; s < 2; s++) {
    MUST(cudaStreamSynchronize(streams[s]));
    std::vector<int> result(n);
    MUST(cudaMemcpy(result.data(), sums[s], n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(result[i] == rounds * (rounds - 1) / 2 + rounds * i);
  }
  EXPECT(used(pool) == before);

  // Freed, visible in the account at once, allocated again; a second free of the same address is an error.
  void *block, *again;
  MUST(cudaMallocAsync(&block, 5 << 20, streams[0]));
  EXPECT(used(pool) >= before + (5 << 20));
  MUST(cudaFreeAsync(block, streams[0]));
  EXPECT(cudaFreeAsync(block, streams[0]) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  MUST(cudaStreamSynchronize(streams[0]));
  EXPECT(used(pool) == before);
  MUST(cudaMallocAsync(&block, 5 << 20, streams[0]));
  MUST(cudaFreeAsync(block, streams[0]));
  MUST(cudaMallocAsync(&again, 5 << 20, streams[0]));
  cudaPointerAttributes about;
  MUST(cudaPointerGetAttributes(&about, again));
  EXPECT(about.type == cudaMemoryTypeDevice);
  EXPECT(used(pool) >= before + (5 << 20) && used(pool) < before + (10 << 20));
  MUST(cudaFreeAsync(again, streams[0]));
  // The stream is destroyed before the memory is used again; the memory is returned nevertheless.
  MUST(cudaMallocAsync(&block, 3 << 20, streams[1]));
  MUST(cudaFreeAsync(block, streams[1]));
  MUST(cudaStreamDestroy(streams[1]));
  MUST(cudaDeviceSynchronize());
  EXPECT(used(pool) == before);
  MUST(cudaMemPoolTrimTo(pool, 0));
  MUST(cudaStreamDestroy(streams[0]));
  return pass("pool_reuse");
}
