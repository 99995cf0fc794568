// Uses up a device's memory: the very call that cannot be served says so, earlier work is not disturbed, and
// freed memory is available again at once, as allocators that retry expect.
#include "../common.hh"

__global__ void add(int* x, int n, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += what;
}

namespace {

constexpr std::size_t megabyte = 1 << 20, granule = 2 * megabyte;

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  MUST(cudaMemGetInfo(&free, &total));
  EXPECT(free <= total);
  return free;
}

/// Tries one allocation. A refusal must come from this call, leave the pointer unchanged, and be reported
/// once.
void* tried(std::size_t bytes) {
  void* const untouched = reinterpret_cast<void*>(0x10);
  void* got = untouched;
  const cudaError_t code = cudaMalloc(&got, bytes);
  if (code == cudaSuccess) {
    EXPECT(got != untouched && got != nullptr);
    return got;
  }
  EXPECT(code == cudaErrorMemoryAllocation && (got == untouched || got == nullptr));
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
  return nullptr;
}

std::vector<void*> take(std::size_t bytes) {
  std::vector<void*> taken;
  while (void* got = tried(bytes)) {
    taken.push_back(got);
    EXPECT(taken.size() < 100000);
  }
  return taken;
}

}  // namespace

int main() {
  constexpr int n = 1 << 16;
  int* x = nullptr;
  std::vector<int> seen(n);
  MUST(cudaMalloc(&x, n * sizeof(int)));
  MUST(cudaMemset(x, 0, n * sizeof(int)));
  MUST(cudaDeviceSynchronize());
  const std::size_t all = free_memory();
  const std::size_t quarter = all / 4 / granule * granule;
  // An allowance for memory that other processes on the device take or return at the same time.
  const std::size_t others = all / 64 + 64 * megabyte;

  int added = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) add<<<n / 256, 256>>>(x, n, 1), ++added;
    std::vector<void*> large = take(quarter);
    EXPECT(large.size() == 3 || large.size() == 4);
    EXPECT(free_memory() + large.size() * quarter <= all + others);
    // Work continues during the refusals, and a retry after a free succeeds however much work is under way.
    for (int attempt = 0; attempt < 5; ++attempt) {
      add<<<n / 256, 256>>>(x, n, 1), ++added;
      EXPECT(tried(quarter) == nullptr);
      MUST(cudaFree(large.back()));
      large.back() = tried(quarter);
      EXPECT(large.back() != nullptr);
    }
    // The rest in ever smaller pieces, to the last granule.
    std::vector<void*> rest;
    for (std::size_t bytes = quarter; bytes >= granule; bytes = bytes / 2 / granule * granule) {
      const std::vector<void*> more = take(bytes);
      rest.insert(rest.end(), more.begin(), more.end());
    }
    EXPECT(free_memory() < others);
    EXPECT(tried(others) == nullptr);
    MUST(cudaMemcpy(seen.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int value : seen) EXPECT(value == added);
    for (void* each : large) MUST(cudaFree(each));
    for (void* each : rest) MUST(cudaFree(each));
    EXPECT(free_memory() + others >= all);
  }

  // Nearly everything, again and again: freed memory is available without delay.
  for (int i = 0; i < 10; ++i) {
    void* most = tried(3 * quarter);
    EXPECT(most != nullptr);
    MUST(cudaMemsetAsync(most, i, megabyte));
    MUST(cudaFree(most));
  }
  EXPECT(tried(~std::size_t{0} / 2) == nullptr);
  MUST(cudaFree(x));
  return pass("memory_runs_out");
}
