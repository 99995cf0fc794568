// Wrong calls give the right code at once, and nothing after them is disturbed. The codes are those that an
// H200 with driver 580 and the CUDA 13 runtime gives (a launch out of bounds is "invalid value" there, not
// "configuration").
#include "common.hh"

__global__ void fill(int* data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void use_dynamic(int* data) {
  extern __shared__ int memory[];
  memory[threadIdx.x] = threadIdx.x;
  __syncthreads();
  data[threadIdx.x] = memory[blockDim.x - 1 - threadIdx.x];
}

int main() {
  int *data, host[512];
  MUST(cudaMalloc(&data, sizeof host));

  fill<<<1, 2048>>>(data, 1);
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaSuccess);
  fill<<<0, 32>>>(data, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  fill<<<1, 0>>>(data, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  fill<<<dim3(1, 70000), 32>>>(data, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  fill<<<1, dim3(1, 1, 65)>>>(data, 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  use_dynamic<<<1, 32, 1 << 20>>>(data);  // a megabyte of shared memory
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);

  void* none = nullptr;
  EXPECT(cudaMalloc(&none, size_t(1) << 62) == cudaErrorMemoryAllocation);
  EXPECT(none == nullptr);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaMemcpy(nullptr, host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaFree(reinterpret_cast<char*>(data) + 4096) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaMemset(data, 0, size_t(1) << 30) == cudaErrorInvalidValue);  // beyond the allocation
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  EXPECT(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);

  MUST(cudaDeviceSynchronize());
  fill<<<2, 256>>>(data, 7);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (int x : host) EXPECT(x == 7);
  use_dynamic<<<1, 256, 1024>>>(data);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(host, data, 1024, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) EXPECT(host[i] == 255 - i);
  MUST(cudaFree(data));
  return pass("launch_errors");
}
