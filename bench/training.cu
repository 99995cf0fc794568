// Trains a small network on request: lines on standard input say "steps N" or "seconds S", and the program
// answers each with a line: done, steps, seconds, this process's seconds of CPU time, a checksum of all
// weights, with tabs between. It says "ready" first, once everything is warm. usage: training [WIDTH]
// [LAYERS] [BATCH]; multiples of 16. Equal steps give equal checksums on one device, because no sum depends
// on the order of threads. An ordinary CUDA program.
#include <cuda_runtime.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "must.hh"

namespace {

constexpr int tile = 16;
constexpr int steps_at_once = 10;  // between two waits of a timed run

enum class form { plain, left_turned, right_turned };

/// c = f(a b), or with one of them transposed; rows x columns, with `inner` terms.
template <form how, class Finish>
__global__ void multiply(const float* a, const float* b, float* c, int rows, int columns, int inner,
                         Finish finish) {
  __shared__ float of_a[tile][tile + 1], of_b[tile][tile + 1];
  const int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < inner; at += tile) {
    const int x = at + threadIdx.x, y = at + threadIdx.y;
    of_a[threadIdx.y][threadIdx.x] = how == form::left_turned ? a[x * rows + row] : a[row * inner + x];
    of_b[threadIdx.y][threadIdx.x] =
        how == form::right_turned ? b[column * inner + y] : b[y * columns + column];
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += of_a[threadIdx.y][k] * of_b[k][threadIdx.x];
    __syncthreads();
  }
  finish(c[row * columns + column], sum, row * columns + column);
}

struct bend {  // a layer's activation
  __device__ void operator()(float& out, float sum, int) const { out = sum / (1 + fabsf(sum)); }
};
struct unbend {  // its error, from the error of the next
  const float* said;
  __device__ void operator()(float& out, float sum, int at) const {
    const float rest = 1 - fabsf(said[at]);
    out = sum * rest * rest;
  }
};
struct learn {
  float rate;
  __device__ void operator()(float& weight, float sum, int) const { weight -= rate * sum; }
};

__global__ void difference(const float* said, const float* wanted, float* error, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) error[i] = (said[i] - wanted[i]) * 2 / count;
}

class network {
 public:
  network(int width, int layers, int batch) : width_(width), layers_(layers), batch_(batch) {
    weights_.resize(layers), said_.resize(layers + 1), error_.resize(layers + 1);
    unsigned state = 1;
    const auto filled = [&](size_t count, float scale) {
      std::vector<float> values(count);
      for (float& v : values) {
        state = state * 1664525 + 1013904223;
        v = (static_cast<float>(state >> 8) / (1 << 24) - 0.5f) * scale;
      }
      float* device = empty(count);
      MUST(cudaMemcpy(device, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
      return device;
    };
    for (auto& w : weights_) w = filled(size_t(width) * width, 4.0f / width);
    for (auto& s : said_) s = filled(size_t(batch) * width, 1);
    for (auto& e : error_) e = empty(size_t(batch) * width);
    wanted_ = filled(size_t(batch) * width, 1);
  }

  /// Asynchronous, and reads nothing back: 3 launches a layer.
  void step() {
    const dim3 block(tile, tile), of_batch(width_ / tile, batch_ / tile),
        of_weights(width_ / tile, width_ / tile);
    for (int n = 0; n < layers_; ++n)
      multiply<form::plain>
          <<<of_batch, block>>>(said_[n], weights_[n], said_[n + 1], batch_, width_, width_, bend{});
    const int count = batch_ * width_;
    difference<<<(count + 255) / 256, 256>>>(said_[layers_], wanted_, error_[layers_], count);
    for (int n = layers_ - 1; n >= 0; --n) {
      multiply<form::right_turned><<<of_batch, block>>>(error_[n + 1], weights_[n], error_[n], batch_, width_,
                                                        width_, unbend{said_[n]});
      multiply<form::left_turned>
          <<<of_weights, block>>>(said_[n], error_[n + 1], weights_[n], width_, width_, batch_, learn{0.1f});
    }
    MUST(cudaGetLastError());
  }

  unsigned long long checksum() const {
    std::vector<unsigned> bits(size_t(width_) * width_);
    unsigned long long sum = 14695981039346656037ull;
    for (const float* w : weights_) {
      MUST(cudaMemcpy(bits.data(), w, bits.size() * sizeof bits[0], cudaMemcpyDeviceToHost));
      for (unsigned b : bits) sum = (sum ^ b) * 1099511628211ull;
    }
    return sum;
  }

 private:
  static float* empty(size_t count) {
    float* made;
    MUST(cudaMalloc(&made, count * sizeof(float)));
    return made;
  }

  const int width_, layers_, batch_;
  std::vector<float*> weights_, said_, error_;
  float* wanted_;
};

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

int rounded(int count, char** values, int which, int otherwise) {
  const int value = count > which ? std::atoi(values[which]) : otherwise;
  return value > 0 ? (value + tile - 1) / tile * tile : otherwise;
}

}  // namespace

int main(int count, char** values) {
  const int layers = count > 2 ? std::atoi(values[2]) : 6;
  network n(rounded(count, values, 1, 256), layers > 0 ? layers : 6, rounded(count, values, 3, 64));
  n.step();
  MUST(cudaDeviceSynchronize());
  std::printf("ready\n");
  std::fflush(stdout);
  char line[64], unit[16];
  for (double amount;
       std::fgets(line, sizeof line, stdin) && std::sscanf(line, "%15s %lf", unit, &amount) == 2;) {
    const double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    long done = 0;
    if (std::strcmp(unit, "steps") == 0) {
      for (; done < static_cast<long>(amount); ++done) n.step();
      MUST(cudaDeviceSynchronize());
    } else {
      while (seconds(CLOCK_MONOTONIC) - began < amount) {
        for (int i = 0; i < steps_at_once; ++i) n.step();
        done += steps_at_once;
        MUST(cudaDeviceSynchronize());
      }
    }
    const double took = seconds(CLOCK_MONOTONIC) - began, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    std::printf("done\t%ld\t%.6f\t%.6f\t%016llx\n", done, took, cpu, n.checksum());
    std::fflush(stdout);
  }
  return 0;
}
