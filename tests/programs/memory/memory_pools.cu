// Stream-ordered memory: pools of the device and of the program's own, their accounts and thresholds;
// memory that outlives its pool; allocations that two streams pass to each other with events.
#include "../common.hh"

__global__ void fill(int* to, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value + i;
}

__global__ void add(int* to, const int* from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

std::uint64_t account(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = ~0ull;
  MUST(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

void two_streams(cudaMemPool_t pool) {
  constexpr int n = 1 << 14;
  cudaStream_t first, second;
  cudaEvent_t ready, done;
  MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  MUST(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  std::vector<int> result(n);
  for (int round = 0; round < 20; round++) {
    int *a, *b;
    MUST(cudaMallocFromPoolAsync(&a, n * sizeof(int), pool, first));
    MUST(cudaMallocAsync(&b, n * sizeof(int), second));
    fill<<<n / 256, 256, 0, first>>>(a, n, round);
    MUST(cudaEventRecord(ready, first));
    fill<<<n / 256, 256, 0, second>>>(b, n, 1000 * round);
    MUST(cudaStreamWaitEvent(second, ready));
    add<<<n / 256, 256, 0, second>>>(b, a, n);
    MUST(cudaEventRecord(done, second));
    MUST(cudaStreamWaitEvent(first, done));
    MUST(cudaFreeAsync(a, first));
    MUST(cudaMemcpyAsync(result.data(), b, n * sizeof(int), cudaMemcpyDeviceToHost, second));
    MUST(cudaFreeAsync(b, second));
    MUST(cudaStreamSynchronize(second));
    for (int i = 0; i < n; i++) EXPECT(result[i] == 1001 * round + 2 * i);
  }
  MUST(cudaDeviceSynchronize());
  MUST(cudaEventDestroy(ready));
  MUST(cudaEventDestroy(done));
  MUST(cudaStreamDestroy(first));
  MUST(cudaStreamDestroy(second));
}

void accounts(cudaMemPool_t pool) {
  const std::uint64_t before = account(pool, cudaMemPoolAttrUsedMemCurrent);
  void *small, *large;
  MUST(cudaMallocFromPoolAsync(&small, 1000, pool, nullptr));
  MUST(cudaMallocFromPoolAsync(&large, 9 << 20, pool, nullptr));
  const std::uint64_t used = account(pool, cudaMemPoolAttrUsedMemCurrent);
  EXPECT(used >= before + (9 << 20) + 1000);
  EXPECT(account(pool, cudaMemPoolAttrReservedMemCurrent) >= used);
  EXPECT(account(pool, cudaMemPoolAttrUsedMemHigh) >= used);
  MUST(cudaFreeAsync(small, nullptr));
  MUST(cudaFreeAsync(large, nullptr));
  MUST(cudaStreamSynchronize(nullptr));
  EXPECT(account(pool, cudaMemPoolAttrUsedMemCurrent) == before);
  std::uint64_t zero = 0, one = 1;
  MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
  EXPECT(account(pool, cudaMemPoolAttrUsedMemHigh) == before);
  EXPECT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one) == cudaErrorInvalidValue);
  cudaGetLastError();
  // The other kind of free accepts it too; the driver decides when the pool notices.
  MUST(cudaMallocFromPoolAsync(&large, 9 << 20, pool, nullptr));
  MUST(cudaFree(large));
}

void threshold(cudaMemPool_t pool) {
  std::uint64_t keep = ~0ull, kept = 0;
  MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  MUST(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  EXPECT(kept == keep);
  void* block;
  MUST(cudaMallocFromPoolAsync(&block, 32 << 20, pool, nullptr));
  MUST(cudaFreeAsync(block, nullptr));
  MUST(cudaDeviceSynchronize());
  EXPECT(account(pool, cudaMemPoolAttrReservedMemCurrent) >= 32 << 20);
  MUST(cudaMemPoolTrimTo(pool, 0));
  EXPECT(account(pool, cudaMemPoolAttrReservedMemCurrent) < 32 << 20);
}

/// Destroys a pool while its memory is in use: the memory stays.
void outlived(const cudaMemPoolProps& properties) {
  cudaMemPool_t pool, current, standard;
  MUST(cudaMemPoolCreate(&pool, &properties));
  MUST(cudaDeviceGetDefaultMemPool(&standard, 0));
  MUST(cudaDeviceSetMemPool(0, pool));
  MUST(cudaDeviceGetMemPool(&current, 0));
  EXPECT(current == pool && pool != standard);
  int* block;
  MUST(cudaMallocAsync(&block, 4096 * sizeof(int), nullptr));
  EXPECT(account(pool, cudaMemPoolAttrUsedMemCurrent) >= 4096 * sizeof(int));
  MUST(cudaMemPoolDestroy(pool));
  MUST(cudaDeviceGetMemPool(&current, 0));
  EXPECT(current == standard);
  fill<<<16, 256>>>(block, 4096, 5);
  std::vector<int> result(4096);
  MUST(cudaMemcpy(result.data(), block, result.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4096; i++) EXPECT(result[i] == 5 + i);
  MUST(cudaFreeAsync(block, nullptr));
  MUST(cudaDeviceSynchronize());
}

int main() {
  int supported = 0;
  MUST(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  EXPECT(supported == 1);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t own, standard, again;
  MUST(cudaMemPoolCreate(&own, &properties));
  MUST(cudaDeviceGetDefaultMemPool(&standard, 0));
  MUST(cudaDeviceGetDefaultMemPool(&again, 0));
  EXPECT(standard == again && standard != own);
  int reuse = -1;
  MUST(cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  EXPECT(reuse == 1);
  reuse = 0;
  MUST(cudaMemPoolSetAttribute(own, cudaMemPoolReuseAllowOpportunistic, &reuse));
  reuse = 7;
  MUST(cudaMemPoolGetAttribute(own, cudaMemPoolReuseAllowOpportunistic, &reuse));
  EXPECT(reuse == 0);
  cudaMemAccessDesc access = {};
  access.location = properties.location;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  MUST(cudaMemPoolSetAccess(own, &access, 1));
  cudaMemAccessFlags flags;
  MUST(cudaMemPoolGetAccess(&flags, own, &properties.location));
  EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
  two_streams(own);
  accounts(own);
  accounts(standard);
  threshold(own);
  outlived(properties);
  void* never = nullptr;
  EXPECT(cudaMallocAsync(&never, ~0ull >> 4, nullptr) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  MUST(cudaMemPoolDestroy(own));
  return pass("memory_pools");
}
