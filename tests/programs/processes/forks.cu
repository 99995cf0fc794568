// Forked processes. Children of a parent that has not used CUDA can use it; children that execute another
// program can use it there; children of a parent that uses CUDA affect no other process, whichever thread
// makes them and whenever.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "../common.hh"

extern char** environ;

__global__ void increment(int* x) { *x += 1; }

namespace {

/// Uses a little of everything; returns the exit status for a child.
int work() {
  int *x = nullptr, value = 0;
  if (cudaMalloc(&x, sizeof *x) || cudaMemset(x, 0, sizeof *x)) return 20;
  for (int i = 0; i < 10; ++i) increment<<<1, 1>>>(x);
  if (cudaGetLastError() || cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost)) return 21;
  if (cudaFree(x)) return 22;
  return value == 10 ? 0 : 23;
}

int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 100;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

template <class Body>
pid_t in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  EXPECT(child > 0);
  return child;
}

/// The parent has not used CUDA: each child is a program like any other, and so are its own children.
void before_cuda() {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) children.push_back(in_child(work));
  for (pid_t child : children) EXPECT(status_of(child) == 0);
  EXPECT(status_of(in_child([] { return status_of(in_child(work)); })) == 0);
  std::thread([] { EXPECT(status_of(in_child(work)) == 0); }).join();
}

pid_t another_program(const char* self, bool by_fork) {
  char* arguments[] = {const_cast<char*>(self), const_cast<char*>("work"), nullptr};
  if (by_fork)
    return in_child([&] {
      execv(self, arguments);
      return 97;
    });
  pid_t child = 0;
  EXPECT(posix_spawn(&child, self, nullptr, nullptr, arguments, environ) == 0);
  return child;
}

/// As multiprocessing's "spawn" does.
void other_programs(const char* self) {
  std::vector<pid_t> children;
  for (bool by_fork : {true, false, true}) {
    children.push_back(another_program(self, by_fork));
    EXPECT(work() == 0);
  }
  for (pid_t child : children) EXPECT(status_of(child) == 0);
  EXPECT(work() == 0);
  EXPECT(std::system("exit 3") == 3 << 8);
  FILE* pipe = popen("echo piped", "r");
  char text[16] = {};
  EXPECT(pipe && std::fgets(text, sizeof text, pipe) && std::strcmp(text, "piped\n") == 0);
  pclose(pipe);
  EXPECT(work() == 0);
}

/// The process forks while threads are in the middle of calls; the child has none of these threads.
void under_load() {
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<char> bytes(1 << 20, 1), back(1 << 20);
      char* there = nullptr;
      MUST(cudaMalloc(&there, bytes.size()));
      while (!stop) {
        MUST(cudaMemcpy(there, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(back.data(), there, bytes.size(), cudaMemcpyDeviceToHost));
        EXPECT(back == bytes);
        ++rounds;
      }
      MUST(cudaFree(there));
    });
  }
  for (int i = 0; i < 20; ++i) {
    const int before = rounds;
    const int seen = status_of(in_child([] {
      int* x = nullptr;
      return cudaMalloc(&x, 16) == cudaErrorInitializationError ? 0 : 10;
    }));
    EXPECT(seen == 0);
    while (rounds < before + 4) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace

int main(int count, char** values) {
  if (count > 1) return work();
  before_cuda();
  EXPECT(work() == 0);
  other_programs(values[0]);
  under_load();
  EXPECT(work() == 0);
  return pass("forks");
}
