// Measures kernels that spend their time computing, each next to a plain loop on the host with the same
// arithmetic (compiled with -O2, one thread). Prints rows of name, value and unit with tabs between; the exit
// status is 1 if a result is wrong. usage: kernels [--repeat N] [--small] [NAME...]
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "kernels: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
#define TRY(call) require(call, #call)

template <typename T>
class on_device {
 public:
  explicit on_device(std::size_t count) : count_(count) { TRY(cudaMalloc(&pointer_, count * sizeof(T))); }
  explicit on_device(const std::vector<T>& from) : on_device(from.size()) { set(from); }
  ~on_device() { cudaFree(pointer_); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  void set(const std::vector<T>& from) {
    TRY(cudaMemcpy(pointer_, from.data(), from.size() * sizeof(T), cudaMemcpyDefault));
  }
  std::vector<T> get() const {
    std::vector<T> to(count_);
    TRY(cudaMemcpy(to.data(), pointer_, count_ * sizeof(T), cudaMemcpyDefault));
    return to;
  }
  operator T*() const { return pointer_; }

 private:
  T* pointer_ = nullptr;
  std::size_t count_;
};

int repeats = 5;
bool small_sizes = false;
bool all_right = true;

template <typename Body>
double median_ms(Body body) {
  std::vector<double> times;
  for (int n = 0; n < repeats; ++n) {
    const auto began = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - began;
    times.push_back(spent.count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

template <typename Device, typename Loop>
void report(const char* name, Device device, Loop loop, bool right) {
  if (!right) std::fprintf(stderr, "kernels: %s: wrong result\n", name), all_right = false;
  std::printf("%s\t%.3f\tms\n%s, plain loop\t%.3f\tms\n", name, median_ms(device), name, median_ms(loop));
  std::fflush(stdout);
}

std::vector<float> random_floats(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 12345;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 9) / (1 << 23) - 0.5f;
  }
  return values;
}

// ---- matrix multiplication, tiled through shared memory

template <int tile>
__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float as[tile][tile], bs[tile][tile];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * tile + x, row = blockIdx.y * tile + y;
  float sum = 0;
  for (int at = 0; at < n; at += tile) {
    as[y][x] = a[row * n + at + x];
    bs[y][x] = b[(at + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

template <int tile>
void multiply_matrices(const char* name) {
  const int n = small_sizes ? 64 : 512;
  const auto a = random_floats(n * n), b = random_floats(n * n);
  std::vector<float> expected(n * n);
  const on_device<float> da(a), db(b), dc(n * n);
  const auto device = [&] {
    multiply<tile><<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(da, db, dc, n);
    TRY(cudaDeviceSynchronize());
  };
  const auto loop = [&] {
    for (int row = 0; row < n; ++row) {
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
        expected[row * n + column] = sum;
      }
    }
  };
  device(), loop();
  const auto got = dc.get();
  bool right = true;
  for (int n2 = 0; n2 < n * n; ++n2) right = right && std::fabs(got[n2] - expected[n2]) <= 1e-3f;
  report(name, device, loop, right);
}

// ---- reduction with shuffles

__global__ void sum_up(const float* in, float* out, int n) {
  float sum = 0;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) sum += in[at];
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
  __shared__ float of_warp[32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

void reduce() {
  const int n = small_sizes ? 1 << 14 : 1 << 22, threads = 256, blocks = n / threads;
  const auto in = random_floats(n);
  const on_device<float> din(in), dout(blocks), dsum(1);
  float expected = 0;
  const auto device = [&] {
    sum_up<<<blocks, threads>>>(din, dout, n);
    sum_up<<<1, threads>>>(dout, dsum, blocks);
    TRY(cudaDeviceSynchronize());
  };
  const auto loop = [&] {
    float sum = 0;
    for (const float v : in) sum += v;
    *static_cast<volatile float*>(&expected) = sum;
  };
  device(), loop();
  double exact = 0;
  for (const float v : in) exact += v;
  report("shuffle reduction 4M", device, loop,
         std::fabs(dsum.get()[0] - exact) < 2 && std::fabs(expected - exact) < 20);
}

// ---- vector addition

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) c[at] = a[at] + b[at];
}

void add_vectors() {
  const int n = small_sizes ? 1 << 14 : 1 << 24;
  const auto a = random_floats(n), b = random_floats(n);
  std::vector<float> expected(n);
  const on_device<float> da(a), db(b), dc(n);
  const auto device = [&] {
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    TRY(cudaDeviceSynchronize());
  };
  const auto loop = [&] {
    for (int at = 0; at < n; ++at) expected[at] = a[at] + b[at];
  };
  device(), loop();
  report("vector addition 16M", device, loop, dc.get() == expected);
}

// ---- a loop whose length differs from lane to lane

__host__ __device__ std::uint32_t steps_to_one(std::uint64_t value) {
  std::uint32_t steps = 0;
  for (; value != 1; ++steps) value = value % 2 ? 3 * value + 1 : value / 2;
  return steps;
}

__global__ void collatz(std::uint32_t* out, std::uint32_t n) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) out[at] = steps_to_one(at + 1);
}

void diverge() {
  const std::uint32_t n = small_sizes ? 1 << 12 : 1 << 20;
  std::vector<std::uint32_t> expected(n);
  const on_device<std::uint32_t> dout(n);
  const auto device = [&] {
    collatz<<<(n + 255) / 256, 256>>>(dout, n);
    TRY(cudaDeviceSynchronize());
  };
  const auto loop = [&] {
    for (std::uint32_t at = 0; at < n; ++at) expected[at] = steps_to_one(at + 1);
  };
  device(), loop();
  report("divergent loop (Collatz) 1M", device, loop, dout.get() == expected);
}

// ---- bitonic sorting network

__host__ __device__ void order(std::uint32_t& a, std::uint32_t& b, bool up) {
  if ((a > b) == up) {
    const std::uint32_t t = a;
    a = b, b = t;
  }
}

__global__ void bitonic_step(std::uint32_t* values, std::uint32_t size, std::uint32_t stride) {
  const std::uint32_t pair = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t at = 2 * pair - (pair & (stride - 1));
  order(values[at], values[at + stride], (at & size) == 0);
}

/// All steps whose pairs are within one part of 1024.
__global__ void bitonic_inside(std::uint32_t* values, std::uint32_t size, std::uint32_t first_stride) {
  __shared__ std::uint32_t part[1024];
  const std::uint32_t base = blockIdx.x * 1024;
  part[threadIdx.x] = values[base + threadIdx.x];
  part[threadIdx.x + 512] = values[base + threadIdx.x + 512];
  for (std::uint32_t stride = first_stride; stride > 0; stride >>= 1) {
    __syncthreads();
    const std::uint32_t at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    order(part[at], part[at + stride], ((base + at) & size) == 0);
  }
  __syncthreads();
  values[base + threadIdx.x] = part[threadIdx.x];
  values[base + threadIdx.x + 512] = part[threadIdx.x + 512];
}

void sort() {
  const std::uint32_t n = small_sizes ? 1 << 12 : 1 << 20;
  std::vector<std::uint32_t> in(n), expected;
  std::uint32_t state = 1;
  for (auto& v : in) v = state = state * 1664525u + 1013904223u;
  on_device<std::uint32_t> values(in);
  const auto device = [&] {
    for (std::uint32_t size = 2; size <= n; size *= 2) {
      std::uint32_t stride = size / 2;
      for (; stride >= 1024; stride /= 2) bitonic_step<<<n / 512, 256>>>(values, size, stride);
      bitonic_inside<<<n / 1024, 512>>>(values, size, stride);
    }
    TRY(cudaDeviceSynchronize());
  };
  const auto loop = [&] {
    expected = in;
    for (std::uint32_t size = 2; size <= n; size *= 2) {
      for (std::uint32_t stride = size / 2; stride > 0; stride /= 2) {
        for (std::uint32_t pair = 0; pair < n / 2; ++pair) {
          const std::uint32_t at = 2 * pair - (pair & (stride - 1));
          order(expected[at], expected[at + stride], (at & size) == 0);
        }
      }
    }
  };
  device(), loop();
  report("bitonic sort 1M", device, loop, values.get() == expected);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> wanted;
  for (int n = 1; n < count; ++n) {
    if (!std::strcmp(arguments[n], "--small")) {
      small_sizes = true;
    } else if (!std::strcmp(arguments[n], "--repeat") && n + 1 < count) {
      repeats = std::max(1, std::atoi(arguments[++n]));
    } else {
      wanted.push_back(arguments[n]);
    }
  }
  const std::pair<const char*, void (*)()> all[] = {
      {"multiply16", [] { multiply_matrices<16>("matrix multiplication 512, 16 wide"); }},
      {"multiply32", [] { multiply_matrices<32>("matrix multiplication 512, 32 wide"); }},
      {"reduce", reduce},
      {"add", add_vectors},
      {"diverge", diverge},
      {"sort", sort},
  };
  for (const auto& [name, run] : all) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) run();
  }
  return all_right ? 0 : 1;
}
