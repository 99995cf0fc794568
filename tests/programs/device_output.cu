// The output of kernels appears in this process: printf on stdout, a failed assertion on stderr, both by the
// end of the call that waits for the kernel.
#undef NDEBUG
#include <unistd.h>

#include <cassert>
#include <cstring>
#include <string>

#include "common.hh"

__global__ void hello(int n) {
  printf("round %d thread %d of %d: %5.2f %s\n", n, threadIdx.x, blockDim.x, n * 0.25, "end");
}
__global__ void many(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %06d\n", i);
}
__global__ void check(const int* x, int limit) { assert(x[threadIdx.x] < limit); }

namespace {

/// Redirects descriptor `number` into a file while the object lives.
class diverted {
 public:
  explicit diverted(int number) : number_(number), before_(dup(number)), file_(std::tmpfile()) {
    std::fflush(stdout);
    dup2(fileno(file_), number_);
  }
  ~diverted() {
    std::fflush(stdout);
    dup2(before_, number_);
    close(before_);
    std::fclose(file_);
  }
  std::string text() const {
    std::fflush(stdout);
    std::string all(static_cast<std::size_t>(lseek(fileno(file_), 0, SEEK_END)), '\0');
    EXPECT(pread(fileno(file_), &all[0], all.size(), 0) == static_cast<ssize_t>(all.size()));
    return all;
  }

 private:
  int number_, before_;
  std::FILE* file_;
};

template <class Wait>
void printed_by(const char* what, Wait wait) {
  std::string text;
  {
    const diverted out(1);
    for (int round = 0; round < 3; ++round) {
      hello<<<1, 4>>>(round);
      wait();
    }
    text = out.text();
  }
  std::size_t at = 0;
  for (int round = 0; round < 3; ++round) {
    for (int thread = 0; thread < 4; ++thread) {
      char line[80];
      std::snprintf(line, sizeof line, "round %d thread %d of 4: %5.2f end\n", round, thread, round * 0.25);
      if (at >= text.size() || text.compare(at, std::strlen(line), line) != 0) {
        std::fprintf(stderr, "%s: at %zu of %zu should be: %s", what, at, text.size(), line);
      }
      EXPECT(at < text.size() && text.compare(at, std::strlen(line), line) == 0);
      at += std::strlen(line);
    }
  }
  EXPECT(at == text.size());
}

void a_lot() {
  constexpr int lines = 8000;
  std::string text;
  {
    const diverted out(1);
    many<<<1, 1>>>(lines);
    MUST(cudaDeviceSynchronize());
    text = out.text();
  }
  EXPECT(text.size() == lines * 12u);
  for (int i = 0; i < lines; ++i)
    EXPECT(std::stoi(text.substr(static_cast<std::size_t>(i) * 12 + 5, 6)) == i);
}

void failed_assertion() {
  int values[8] = {0, 1, 2, 9, 4, 5, 6, 7}, *x;
  MUST(cudaMalloc(&x, sizeof values));
  MUST(cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice));
  check<<<1, 8>>>(x, 10);
  MUST(cudaDeviceSynchronize());
  std::string text;
  {
    const diverted errors(2);
    check<<<1, 8>>>(x, 9);
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    text = errors.text();
  }
  EXPECT(text.find("device_output.cu") != text.npos);
  EXPECT(text.find("thread: [3,0,0] Assertion `x[threadIdx.x] < limit` failed.") != text.npos);
}

}  // namespace

int main() {
  int* value;
  cudaEvent_t event;
  MUST(cudaMalloc(&value, sizeof *value));
  MUST(cudaEventCreate(&event));
  printed_by("cudaDeviceSynchronize", [] { MUST(cudaDeviceSynchronize()); });
  printed_by("cudaStreamSynchronize", [] { MUST(cudaStreamSynchronize(cudaStreamLegacy)); });
  printed_by("cudaEventSynchronize", [&] {
    MUST(cudaEventRecord(event));
    MUST(cudaEventSynchronize(event));
  });
  printed_by("cudaMemcpy", [&] {
    int host;
    MUST(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
  });
  a_lot();
  failed_assertion();
  std::printf("PASS device_output\n");
  return 0;
}
