// Very many calls of one process. usage: soak_calls [CALLS] [MARKS]: with MARKS it stops that many times,
// evenly spread, with nothing under way: prints "mark" and waits for a line, so that somebody can look what
// is held.
#include <cstring>

#include "common.hh"

__global__ void increment(unsigned* x) { *x += 1; }

namespace {

/// Calls one round makes.
constexpr long in_round = 20;

struct things {
  unsigned *device = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  unsigned expected = 0;
};

void round(things& t) {
  cudaEvent_t event;
  void *memory = nullptr, *host = nullptr;
  unsigned plain = 0;
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  MUST(cudaMalloc(&memory, 100000));
  MUST(cudaMemsetAsync(memory, 1, 100000, t.stream));
  for (int i = 0; i < 4; ++i) increment<<<1, 1, 0, t.stream>>>(t.device);
  t.expected += 4;
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
  const long rounds = argument(count, values, 1, 20000) / in_round, marks = argument(count, values, 2, 0);
  things t;
  MUST(cudaMalloc(&t.device, sizeof *t.device));
  MUST(cudaMemset(t.device, 0, sizeof *t.device));
  MUST(cudaMallocHost(&t.pinned, sizeof *t.pinned));
  MUST(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
  MUST(cudaDeviceSynchronize());
  for (long i = 1, mark = 1; i <= rounds; ++i) {
    round(t);
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
