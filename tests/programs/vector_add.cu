// The first program of every CUDA course: c = a + b. usage: vector_add [ELEMENTS]
#include "common.hh"

__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main(int count, char** values) {
  const int n = argument(count, values, 1, 100000);
  const size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n);
  numbers random;
  for (int i = 0; i < n; i++) a[i] = random.next_float(), b[i] = random.next_float();
  float *on_a, *on_b, *on_c;
  MUST(cudaMalloc(&on_a, bytes));
  MUST(cudaMalloc(&on_b, bytes));
  MUST(cudaMalloc(&on_c, bytes));
  MUST(cudaMemcpy(on_a, a.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(on_b, b.data(), bytes, cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(on_a, on_b, on_c, n);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(c.data(), on_c, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaFree(on_a));
  MUST(cudaFree(on_b));
  MUST(cudaFree(on_c));
  for (int i = 0; i < n; i++) EXPECT(c[i] == a[i] + b[i]);
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  std::printf("%d sums computed on \"%s\"\n", n, device.name);
  return pass("vector_add");
}
