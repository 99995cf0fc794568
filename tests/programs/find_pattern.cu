// Takes all device memory and looks for what fill_and_hang wrote: fresh memory must not hold another
// program's bytes. usage: find_pattern [MEGABYTES]
#include "pattern.hh"

__global__ void look(const std::uint64_t* words, size_t count, unsigned long long* found) {
  size_t step = size_t(gridDim.x) * blockDim.x;
  unsigned long long own = 0;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    own += words[i] == pattern;
  if (own) atomicAdd(found, own);
}

int main(int count, char** values) {
  unsigned long long *counter, found = 0;
  MUST(cudaMalloc(&counter, sizeof *counter));
  MUST(cudaMemset(counter, 0, sizeof *counter));
  auto taken = take_all(argument(count, values, 1, 0));
  EXPECT(!taken.empty());
  for (auto& each : taken) look<<<256, 256>>>(each.words, each.count, counter);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(&found, counter, sizeof found, cudaMemcpyDeviceToHost));
  std::printf("searched %zu MB, found the pattern %llu times\n", megabytes(taken), found);
  EXPECT(found == 0);
  return pass("find_pattern");
}
