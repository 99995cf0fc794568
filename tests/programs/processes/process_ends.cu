// Ways in which a process may end while the device works for it. usage: process_ends HOW. Each ends at once,
// with its own status, whatever runs. Without HOW the program runs itself in every way and checks the
// results.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "../common.hh"

__global__ void spin(volatile int* stop) {
  while (*stop == 0) {
  }
}
__global__ void increment(int* x) { *x += 1; }

namespace {

/// Starts a kernel that never ends, and copies behind it.
void keep_busy() {
  int *stop, *data;
  MUST(cudaMalloc(&stop, sizeof(int)));
  MUST(cudaMemset(stop, 0, sizeof(int)));
  MUST(cudaMalloc(&data, 1 << 20));
  MUST(cudaDeviceSynchronize());
  spin<<<1, 1>>>(stop);
  MUST(cudaGetLastError());
  static char source[1 << 16];
  void* target = nullptr;
  MUST(cudaMallocHost(&target, 1 << 16));
  MUST(cudaMemcpyAsync(data, source, sizeof source, cudaMemcpyHostToDevice));
  MUST(cudaMemcpyAsync(target, data, 1 << 16, cudaMemcpyDeviceToHost));
}

void on_signal(int) { _exit(7); }

/// Made before the first call, so it is destroyed after the driver has ended: calls answer, and neither crash
/// nor wait.
struct late {
  int* memory = nullptr;
  ~late() {
    const cudaError_t freed = memory ? cudaFree(memory) : cudaErrorCudartUnloading;
    const cudaError_t next = cudaMalloc(&memory, 16);
    if (freed == cudaErrorCudartUnloading && next == cudaErrorCudartUnloading) return;
    std::printf("late calls gave %d and %d\n", freed, next);
    _exit(99);
  }
};

int end_by(const std::string& how) {
  static late one;  // destroyed after main, before or after the runtime's own
  if (how == "return") {
    MUST(cudaMalloc(&one.memory, 64));
    return 5;
  }
  if (how == "busy return") return keep_busy(), 5;
  if (how == "busy exit") keep_busy(), exit(5);
  if (how == "busy _exit") keep_busy(), _exit(5);
  if (how == "busy quick_exit") keep_busy(), quick_exit(5);
  if (how == "busy abort") keep_busy(), abort();
  if (how == "busy kill") keep_busy(), raise(SIGKILL);
  if (how == "busy term") keep_busy(), raise(SIGTERM);
  if (how == "handled term") {
    signal(SIGTERM, on_signal);
    keep_busy();
    std::thread([] {
      usleep(100000);
      kill(getpid(), SIGTERM);
    }).detach();
    cudaDeviceSynchronize();
  }
  if (how == "exit beside a wait") {
    keep_busy();
    std::thread([] {
      usleep(100000);
      exit(5);
    }).detach();
    cudaDeviceSynchronize();  // until the process ends
    for (;;) pause();
  }
  if (how == "exit of a host function" || how == "_exit of a host function") {
    static const bool handlers = how[0] == 'e';
    MUST(cudaFree(nullptr));
    MUST(cudaLaunchHostFunc(
        nullptr, [](void*) { handlers ? exit(5) : _exit(5); }, nullptr));
    cudaDeviceSynchronize();
    for (;;) pause();
  }
  if (how == "threads at work") {
    static std::atomic<int> rounds{0};
    for (int i = 0; i < 8; ++i) {
      std::thread([] {
        int* x = nullptr;
        cudaStream_t s = nullptr;
        if (cudaMalloc(&x, sizeof(int)) || cudaStreamCreate(&s)) return;
        while (cudaPeekAtLastError() == cudaSuccess) {
          increment<<<1, 1, 0, s>>>(x);
          if (cudaStreamSynchronize(s) != cudaSuccess) break;
          ++rounds;
        }
        for (;;) pause();
      }).detach();
    }
    while (rounds < 50) usleep(1000);
    return 5;
  }
  std::printf("no such end: %s\n", how.c_str());
  return 98;
}

struct expectation {
  const char* how;
  int status, signal;
};

int seconds_since(std::chrono::steady_clock::time_point begin) {
  using std::chrono::duration_cast;
  return static_cast<int>(
      duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count());
}

void judge(const char* self, const expectation& e, int tries = 1) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();  // CUDA is unused here
  if (child == 0) {
    execl(self, self, e.how, static_cast<char*>(nullptr));
    _exit(97);
  }
  int status = 0;
  pid_t got = 0;
  while ((got = waitpid(child, &status, WNOHANG)) == 0 && seconds_since(begin) < 60) usleep(5000);
  if (got == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    std::printf("%s: it did not end\n", e.how);
    EXPECT(false);
  }
  const bool right = e.signal ? WIFSIGNALED(status) && WTERMSIG(status) == e.signal
                              : WIFEXITED(status) && WEXITSTATUS(status) == e.status;
  if (!right) std::printf("%s: it ended with status %x\n", e.how, status);
  if (!right && tries > 1 && WIFSIGNALED(status)) return judge(self, e, tries - 1);
  EXPECT(right);
}

}  // namespace

int main(int count, char** values) {
  if (count > 1) return end_by(values[1]);
  const expectation all[] = {
      {"return", 5, 0},
      {"busy return", 5, 0},
      {"busy exit", 5, 0},
      {"busy _exit", 5, 0},
      {"busy quick_exit", 5, 0},
      {"busy abort", 0, SIGABRT},
      {"busy kill", 0, SIGKILL},
      {"busy term", 0, SIGTERM},
      {"handled term", 7, 0},
      {"exit beside a wait", 5, 0},
      {"_exit of a host function", 5, 0},
      {"exit of a host function", 5, 0},
  };
  for (const expectation& e : all) judge(values[0], e);
  // The runtime itself has a race here: a thread that returns from a wait reads what exit() has just freed
  // (seen in libcudart's own code). So one success out of several tries is enough.
  judge(values[0], {"threads at work", 5, 0}, 5);
  return pass("process_ends");
}
