// Makes very many calls in one process. usage: soak_calls [CALLS] [MARKS] [LAUNCHES]: with MARKS it stops
// that many times, evenly spread, with nothing under way: prints "mark" and waits for a line, so that a test
// can measure what is held. LAUNCHES: how many of each round's calls are launches.
#include <cstring>

#include "common.hh"

__global__ void increment(unsigned* x) { *x += 1; }

namespace {

/// Calls of one round in addition to its launches.
constexpr long beside = 16;

struct things {
  unsigned *device = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  unsigned expected = 0;
};

void round(things& t, long launches) {
  cudaEvent_t event;
  void *memory = nullptr, *host = nullptr;
  unsigned plain = 0;
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  MUST(cudaMalloc(&memory, 100000));
  MUST(cudaMemsetAsync(memory, 1, 100000, t.stream));
  for (long i = 0; i < launches; ++i) increment<<<1, 1, 0, t.stream>>>(t.device);
  t.expected += static_cast<unsigned>(launches);
  MUST(cudaGetLastError());
  MUST(cudaMemcpyAsync(t.pinned, t.device, sizeof *t.device, cudaMemcpyDeviceToHost, t.stream));
  MUST(cudaEventRecord(event, t.stream));
  MUST(cudaEventSynchronize(event));
  EXPECT(*t.pinned == t.expected);
  MUST(cudaMemcpy(&plain, t.device, sizeof plain, cudaMemcpyDeviceToHost));
  EXPECT(plain == t.expected);
  MUST(cudaStreamWaitEvent(t.stream, event, 0));
  MUST(cudaMallocAsync(&host, 5000, t.stream));
  MUST(cudaFreeAsync(host, t.stream));
  cudaStream_t other;
  MUST(cudaStreamCreate(&other));
  MUST(cudaStreamQuery(other));
  MUST(cudaStreamDestroy(other));
  MUST(cudaFree(memory));
  MUST(cudaEventDestroy(event));
}

void stop_for_a_look() {
  MUST(cudaDeviceSynchronize());
  std::puts("mark");
  std::fflush(stdout);
  char line[16];
  EXPECT(std::fgets(line, sizeof line, stdin));
}

}  // namespace

int main(int count, char** values) {
  const long launches = argument(count, values, 3, 4), marks = argument(count, values, 2, 0);
  const long rounds = argument(count, values, 1, 20000) / (beside + launches);
  things t;
  MUST(cudaMalloc(&t.device, sizeof *t.device));
  MUST(cudaMemset(t.device, 0, sizeof *t.device));
  MUST(cudaMallocHost(&t.pinned, sizeof *t.pinned));
  MUST(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
  MUST(cudaDeviceSynchronize());
  for (long i = 1, mark = 1; i <= rounds; ++i) {
    round(t, launches);
    if (mark <= marks && i == rounds * mark / marks) {
      stop_for_a_look();
      ++mark;
    }
  }
  MUST(cudaStreamDestroy(t.stream));
  MUST(cudaFreeHost(t.pinned));
  MUST(cudaFree(t.device));
  return pass("soak_calls");
}
