// Tiled matrix product in shared memory. usage: matmul [SIZE] [REPEATS]; SIZE is rounded up to a multiple
// of 16.
#include <cmath>

#include "common.hh"

constexpr int tile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[tile][tile], tile_b[tile][tile];
  int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < n; at += tile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + at + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < tile; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main(int count, char** values) {
  const int n = (argument(count, values, 1, 128) + tile - 1) / tile * tile;
  const int repeats = argument(count, values, 2, 1);
  const size_t bytes = size_t(n) * n * sizeof(float);
  std::vector<float> a(n * n), b(n * n), c(n * n);
  numbers random;
  for (auto& x : a) x = random.next_float();
  for (auto& x : b) x = random.next_float();
  float *on_a, *on_b, *on_c;
  MUST(cudaMalloc(&on_a, bytes));
  MUST(cudaMalloc(&on_b, bytes));
  MUST(cudaMalloc(&on_c, bytes));
  MUST(cudaMemcpy(on_a, a.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(on_b, b.data(), bytes, cudaMemcpyHostToDevice));
  for (int i = 0; i < repeats; i++)
    multiply<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(on_a, on_b, on_c, n);
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy(c.data(), on_c, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaFree(on_a));
  MUST(cudaFree(on_b));
  MUST(cudaFree(on_c));
  double checksum = 0, worst = 0;
  for (float x : c) checksum += x;
  // Above a few hundred the host's own product takes longer than the device's: look at every 7th row then.
  for (int row = 0; row<n; row += n> 256 ? 7 : 1) {
    for (int column = 0; column < n; column++) {
      double right = 0;
      for (int k = 0; k < n; k++) right += double(a[row * n + k]) * b[k * n + column];
      worst = std::fmax(worst, std::fabs(right - c[row * n + column]));
    }
  }
  std::printf("matmul %d x %d checksum %.6f worst error %.2g\n", n, n, checksum, worst);
  EXPECT(worst < 1e-5 * n);
  return pass("matmul");
}
