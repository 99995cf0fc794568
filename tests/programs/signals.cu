// A storm of signals, with handlers that do not restart system calls: no CUDA call fails or hangs by it, and
// the program's own system calls are still interrupted.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "common.hh"

__global__ void scale(float* x, int n, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

namespace {

volatile sig_atomic_t caught = 0;

void count(int) { caught = caught + 1; }

void storm(int every_microseconds) {
  struct sigaction action {};
  action.sa_handler = count;  // no SA_RESTART
  EXPECT(sigaction(SIGALRM, &action, nullptr) == 0);
  const itimerval timer{{0, every_microseconds}, {0, every_microseconds}};
  EXPECT(setitimer(ITIMER_REAL, &timer, nullptr) == 0);
}

void round(int size) {
  std::vector<float> in(size), out(size);
  for (int i = 0; i < size; ++i) in[i] = static_cast<float>(i % 1000);
  float *x = nullptr, *pinned = nullptr;
  cudaStream_t s;
  cudaEvent_t e;
  const std::size_t bytes = size * sizeof(float);
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaMallocHost(&pinned, bytes));
  MUST(cudaStreamCreate(&s));
  MUST(cudaEventCreate(&e));
  MUST(cudaMemcpy(x, in.data(), bytes, cudaMemcpyHostToDevice));
  scale<<<(size + 255) / 256, 256, 0, s>>>(x, size, 2);
  MUST(cudaGetLastError());
  MUST(cudaMemcpyAsync(pinned, x, bytes, cudaMemcpyDeviceToHost, s));
  std::atomic<int> called{0};
  MUST(cudaLaunchHostFunc(
      s, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &called));
  MUST(cudaEventRecord(e, s));
  MUST(cudaEventSynchronize(e));
  EXPECT(called == 1);
  MUST(cudaMemcpy(out.data(), x, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < size; ++i) EXPECT(out[i] == 2 * in[i] && pinned[i] == out[i]);
  MUST(cudaEventDestroy(e));
  MUST(cudaStreamDestroy(s));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(x));
}

}  // namespace

int main() {
  storm(500);
  const auto begin = std::chrono::steady_clock::now();
  int rounds = 0;
  for (; std::chrono::steady_clock::now() - begin < std::chrono::seconds(1) || rounds < 3; ++rounds) {
    for (int size : {1, 1000, 1 << 18, 2 << 20}) round(size);
  }
  std::thread([] { round(1 << 20); }).join();
  EXPECT(caught > 100);
  // The mask and the disposition are the program's own still.
  EXPECT(usleep(100000) == -1 && errno == EINTR);
  sigset_t mask;
  EXPECT(pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0 && !sigismember(&mask, SIGALRM));
  const itimerval none{};
  EXPECT(setitimer(ITIMER_REAL, &none, nullptr) == 0);
  std::printf("%d signals in %d rounds\n", static_cast<int>(caught), rounds);
  return pass("signals");
}
