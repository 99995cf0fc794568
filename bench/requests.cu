// The matrix product of the GVirtuS paper: 320 x 320 by 320 x 640 in float32, 1000 times. Each product is
// complete in itself: it allocates memory, copies both matrices to the device, multiplies, copies the result
// back and frees the memory. Prints rows of name, value and unit with tabs between. usage: requests [COUNT]
// [ROWS] [INNER] [COLUMNS]; sizes are multiples of 16. An ordinary CUDA program.
#include <chrono>
#include <cmath>

#include "../tests/programs/common.hh"

constexpr int tile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int inner, int columns) {
  __shared__ float of_a[tile][tile], of_b[tile][tile];
  const int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < inner; at += tile) {
    of_a[threadIdx.y][threadIdx.x] = a[row * inner + at + threadIdx.x];
    of_b[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * columns + column];
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += of_a[threadIdx.y][k] * of_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * columns + column] = sum;
}

void request(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c, int rows,
             int inner, int columns) {
  float *on_a, *on_b, *on_c;
  MUST(cudaMalloc(&on_a, a.size() * sizeof(float)));
  MUST(cudaMalloc(&on_b, b.size() * sizeof(float)));
  MUST(cudaMalloc(&on_c, c.size() * sizeof(float)));
  MUST(cudaMemcpy(on_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(on_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  multiply<<<dim3(columns / tile, rows / tile), dim3(tile, tile)>>>(on_a, on_b, on_c, inner, columns);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(c.data(), on_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  MUST(cudaFree(on_a));
  MUST(cudaFree(on_b));
  MUST(cudaFree(on_c));
}

int main(int count, char** values) {
  const long requests = argument(count, values, 1, 1000);
  const int rows = argument(count, values, 2, 320), inner = argument(count, values, 3, 320),
            columns = argument(count, values, 4, 640);
  EXPECT(requests > 0 && rows % tile == 0 && inner % tile == 0 && columns % tile == 0);
  std::vector<float> a(size_t(rows) * inner), b(size_t(inner) * columns), c(size_t(rows) * columns), first;
  numbers random;
  for (auto& x : a) x = random.next_float();
  for (auto& x : b) x = random.next_float();
  double first_time = 0, all = 0;
  for (long n = 0; n <= requests; ++n) {
    std::fill(c.begin(), c.end(), 0.0f);
    const auto began = std::chrono::steady_clock::now();
    request(a, b, c, rows, inner, columns);
    const double time =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    (n == 0 ? first_time : all) += time;
    if (n == 0) first = c;
    EXPECT(c == first);
  }
  for (int row = 0; row < rows; row += 5) {
    for (int column = 0; column < columns; ++column) {
      double right = 0;
      for (int k = 0; k < inner; ++k)
        right += double(a[size_t(row) * inner + k]) * b[size_t(k) * columns + column];
      EXPECT(std::fabs(right - c[size_t(row) * columns + column]) < 1e-5 * inner);
    }
  }
  std::printf("first_request\t%.5g\tms\nlater_request\t%.5g\tms\n", first_time, all / double(requests));
  return 0;
}
