// Copies to pageable memory wait for their stream, so a wait after one has nothing to wait for, unless
// another thread has enqueued more since. Then the wait must not return early: the test reads what a kernel
// writes at its end through a stream that waits for nothing.
#include <atomic>
#include <thread>

#include "../common.hh"

__global__ void slowly(int* out, int value, int rounds) {
  unsigned x = value;
  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  *out = x == 0 ? -1 : value;
}

namespace {

constexpr int rounds = 60, length = 20000;
int* on_device = nullptr;

int copied(cudaStream_t stream) {
  int here = 0;
  MUST(cudaMemcpyAsync(&here, on_device, sizeof here, cudaMemcpyDeviceToHost, stream));
  return here;
}

/// Each round makes a copy, then work of another thread in the same stream, then a wait.
void behind_another_thread(cudaStream_t stream, cudaStream_t apart) {
  std::atomic<int> asked{0}, begun{0};
  std::thread other([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (asked.load() < round) std::this_thread::yield();
      slowly<<<1, 1, 0, stream>>>(on_device, round, length);
      MUST(cudaGetLastError());
      begun = round;
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    (void)copied(stream);
    asked = round;
    while (begun.load() < round) std::this_thread::yield();
    MUST(cudaStreamSynchronize(stream));
    EXPECT(copied(apart) == round);
  }
  other.join();
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr, apart = nullptr;
  MUST(cudaMalloc(&on_device, sizeof *on_device));
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  for (int round = 1; round <= rounds; ++round) {
    slowly<<<1, 1, 0, stream>>>(on_device, round, length);
    MUST(cudaGetLastError());
    const int here = copied(stream);
    MUST(cudaStreamSynchronize(stream));  // sends nothing: tests/system/round_trips_test.py
    EXPECT(here == round);
  }
  for (int round = 1; round <= rounds; ++round) {
    (void)copied(stream);
    slowly<<<1, 1, 0, stream>>>(on_device, -round, length);
    MUST(cudaStreamSynchronize(stream));
    EXPECT(copied(apart) == -round);
  }
  behind_another_thread(stream, apart);
  behind_another_thread(nullptr, apart);
  std::printf("PASS copied_waits\n");
  return 0;
}
