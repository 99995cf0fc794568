// Takes all device memory, fills it with a pattern, says "FILLED <megabytes>" and waits to be killed.
// usage: fill_and_hang [MEGABYTES]
#include <unistd.h>

#include "pattern.hh"

__global__ void fill(std::uint64_t* words, size_t count) {
  size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) words[i] = pattern;
}

int main(int count, char** values) {
  auto taken = take_all(argument(count, values, 1, 0));
  EXPECT(!taken.empty());
  for (auto& each : taken) fill<<<256, 256>>>(each.words, each.count);
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  std::printf("FILLED %zu\n", megabytes(taken));
  std::fflush(stdout);
  for (;;) pause();
}
