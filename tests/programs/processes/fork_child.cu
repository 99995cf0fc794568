// A process that uses CUDA forks. The child's CUDA is not initialised (error 3), as with the driver itself;
// its exit, with or without destructors, leaves the parent's session as it was.
#include <sys/wait.h>
#include <unistd.h>

#include "../common.hh"

__global__ void increment(int* x) { *x += 1; }

/// The child reports by its exit status: 0 if all is as expected.
int in_child(bool with_destructors) {
  pid_t child = fork();
  if (child == 0) {
    int* mine = nullptr;
    int status = cudaMalloc(&mine, 4096) == cudaErrorInitializationError ? 0 : 10;
    if (status == 0 && cudaDeviceSynchronize() != cudaErrorInitializationError) status = 11;
    if (with_destructors) exit(status);
    _exit(status);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 100;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

int main() {
  int *x, value = 0;
  MUST(cudaMalloc(&x, sizeof *x));
  MUST(cudaMemset(x, 0, sizeof *x));
  int expected = 0;
  for (bool with_destructors : {false, true}) {
    for (int i = 0; i < 3; i++) {
      increment<<<1, 1>>>(x);  // perhaps not sent yet when the fork happens
      int seen = in_child(with_destructors);
      if (seen != 0) std::printf("the child ended with %d\n", seen);
      EXPECT(seen == 0);
      increment<<<1, 1>>>(x);
      MUST(cudaGetLastError());
      MUST(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
      expected += 2;
      EXPECT(value == expected);
    }
  }
  MUST(cudaFree(x));
  return pass("fork_child");
}
