// Kernels that go wrong, and then the code that CUDA gives. usage: kernel_faults address|assertion.
#undef NDEBUG
#include <cassert>
#include <cstring>

#include "common.hh"

__global__ void write_far(int* data) { data[threadIdx.x + (1ll << 40)] = 1; }
__global__ void claim(const int* data) { assert(data == nullptr); }

int main(int argc, char** argv) {
  const bool asserts = argc > 1 && std::strcmp(argv[1], "assertion") == 0;
  int* data;
  MUST(cudaMalloc(&data, 64));
  if (asserts) {
    claim<<<1, 1>>>(data);
  } else {
    write_far<<<1, 1>>>(data);
  }
  EXPECT(cudaDeviceSynchronize() == (asserts ? cudaErrorAssert : cudaErrorIllegalAddress));
  EXPECT(cudaFree(data) != cudaSuccess);
  return pass("kernel_faults");
}
