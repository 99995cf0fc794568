// __constant__ and __device__ variables: initial values, copies to and from symbols at offsets, their
// addresses.
#include "common.hh"

__constant__ int factors[4] = {1, 2, 3, 4};
__device__ int table[1000];
__device__ int counter = 42;

__global__ void work() {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) table[i] = table[i] * factors[i % 4];
  atomicAdd(&counter, 1);
}

int main() {
  int first = 0;
  MUST(cudaMemcpyFromSymbol(&first, counter, sizeof first));
  EXPECT(first == 42);
  int read[4];
  MUST(cudaMemcpyFromSymbol(read, factors, sizeof read));
  for (int i = 0; i < 4; i++) EXPECT(read[i] == i + 1);

  int changed[2] = {30, 40};
  MUST(cudaMemcpyToSymbol(factors, changed, sizeof changed, 2 * sizeof(int)));
  std::vector<int> start(1000), end(1000);
  for (int i = 0; i < 1000; i++) start[i] = i + 7;
  MUST(cudaMemcpyToSymbolAsync(table, start.data(), 4000, 0, cudaMemcpyHostToDevice, 0));
  work<<<4, 256>>>();
  MUST(cudaGetLastError());
  MUST(cudaMemcpyFromSymbol(end.data(), table, 4000));
  const int now[4] = {1, 2, 30, 40};
  for (int i = 0; i < 1000; i++) EXPECT(end[i] == start[i] * now[i % 4]);

  void* address;
  size_t size;
  MUST(cudaGetSymbolAddress(&address, table));
  MUST(cudaGetSymbolSize(&size, table));
  EXPECT(size == 4000);
  MUST(cudaMemset(address, 0, size));
  work<<<4, 256>>>();
  MUST(cudaMemcpy(end.data(), address, 4000, cudaMemcpyDeviceToHost));
  for (int x : end) EXPECT(x == 0);
  MUST(cudaMemcpyFromSymbol(&first, counter, sizeof first));
  EXPECT(first == 42 + 2 * 1024);
  return pass("symbols");
}
