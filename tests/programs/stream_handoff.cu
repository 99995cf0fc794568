// Two threads hand one stream to each other 500 times; each does its own step, and the steps do not commute,
// so any change of their order shows in the result.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common.hh"

constexpr int turns = 1000;  // 500 each

__global__ void step(std::uint32_t* x, std::uint32_t times, std::uint32_t plus) { *x = *x * times + plus; }

int main() {
  std::uint32_t *x, start = 1, end = 0;
  cudaStream_t stream;
  MUST(cudaMalloc(&x, sizeof *x));
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaMemcpy(x, &start, sizeof start, cudaMemcpyHostToDevice));

  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  auto player = [&](int me, std::uint32_t times, std::uint32_t plus) {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn >= turns || turn % 2 == me; });
      if (turn >= turns) return;
      step<<<1, 1, 0, stream>>>(x, times, plus + turn);
      MUST(cudaGetLastError());
      turn++;
      changed.notify_all();
    }
  };
  std::thread one(player, 0, 3, 1), two(player, 1, 5, 7);
  one.join();
  two.join();
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaMemcpy(&end, x, sizeof end, cudaMemcpyDeviceToHost));
  for (int i = 0; i < turns; i++) start = i % 2 ? start * 5 + 7 + i : start * 3 + 1 + i;
  EXPECT(end == start);
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(x));
  return pass("stream_handoff");
}
