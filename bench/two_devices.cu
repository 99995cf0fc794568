// What two GPUs do in turns: hops from one's stream to the other's by events, and managed memory that both
// and the host touch one after the other. A line for each: name, microseconds (the median of the rounds).
// With one GPU it is both. usage: two_devices [ROUNDS [MIB]]   MIB: of the large blocks, 64
#include <cuda_runtime.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "must.hh"
#include "pacing.hh"

__global__ void touch(unsigned* p, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) p[i] += 1;
}

namespace {

struct side {
  int device = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  unsigned* word = nullptr;
};

void run(const side& s, unsigned* p, std::size_t count) {
  MUST(cudaSetDevice(s.device));
  touch<<<static_cast<unsigned>((count + 255) / 256), 256, 0, s.stream>>>(p, count);
  MUST(cudaGetLastError());
}

/// Kernels on both in turns, each behind the other's last one; for each hop.
double hops(side* sides, int count) {
  const double began = microseconds();
  for (int i = 0; i < count; ++i) {
    side& from = sides[i % 2];
    side& to = sides[(i + 1) % 2];
    run(from, from.word, 1);
    MUST(cudaEventRecord(from.event, from.stream));
    MUST(cudaSetDevice(to.device));
    MUST(cudaStreamWaitEvent(to.stream, from.event, 0));
  }
  for (int i = 0; i < 2; ++i) MUST(cudaStreamSynchronize(sides[i].stream));
  return (microseconds() - began) / count;
}

/// All of it by one, by the other, and every `stride`th word by the host.
double in_turns(const side* sides, unsigned* p, std::size_t count, std::size_t stride, unsigned expected) {
  const double began = microseconds();
  for (int i = 0; i < 2; ++i) {
    run(sides[i], p, count);
    MUST(cudaStreamSynchronize(sides[i].stream));
  }
  for (std::size_t i = 0; i < count; i += stride) p[i] += 1;
  const double took = microseconds() - began;
  for (std::size_t i = 0; i < count; i += stride)
    if (p[i] != expected) std::printf("wrong: word %zu is %u\n", i, p[i]), std::exit(1);
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const std::size_t large = std::size_t{argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 64u} << 20;
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  side sides[2];
  for (int i = 0; i < 2; ++i) {
    sides[i].device = devices > 1 ? i : 0;
    MUST(cudaSetDevice(sides[i].device));
    MUST(cudaStreamCreateWithFlags(&sides[i].stream, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&sides[i].event, cudaEventDisableTiming));
    MUST(cudaMalloc(&sides[i].word, sizeof(unsigned)));
    run(sides[i], sides[i].word, 1);
    MUST(cudaStreamSynchronize(sides[i].stream));
  }
  std::vector<double> took;
  for (int i = 0; i <= rounds; ++i) took.push_back(hops(sides, 200 * rounds));
  std::printf("hop\t%.2f\tus\n", median({took.begin() + 1, took.end()}));
  struct shape {
    const char* name;
    std::size_t bytes, stride;
  };
  for (const shape& s : {shape{"managed_4_KiB", 4 << 10, 1}, shape{"managed_1_MiB", 1 << 20, 1},
                         shape{"managed_large", large, 1}, shape{"managed_large_few", large, 1 << 20}}) {
    unsigned* p = nullptr;
    const std::size_t count = s.bytes / sizeof *p;
    MUST(cudaMallocManaged(&p, s.bytes));
    for (std::size_t i = 0; i < count; ++i) p[i] = 0;
    took.clear();
    for (int i = 0; i <= rounds; ++i)
      took.push_back(in_turns(sides, p, count, s.stride, 3 * (static_cast<unsigned>(i) + 1)));
    MUST(cudaFree(p));
    std::printf("%s\t%.1f\tus\n", s.name, median({took.begin() + 1, took.end()}));
  }
  return 0;
}
