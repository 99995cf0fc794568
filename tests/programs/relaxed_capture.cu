// What a relaxed capture lets the program do: allocate, free, page-lock, load; none of it is captured and
// none of it ends the capture.
#include <cstring>

#include "common.hh"

__global__ void add(int* x, int n, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += what;
}

namespace {

constexpr int n = 1 << 12;
constexpr std::size_t bytes = n * sizeof(int);

bool captures(cudaStream_t s) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  MUST(cudaStreamIsCapturing(s, &status));
  return status == cudaStreamCaptureStatusActive;
}

}  // namespace

int main() {
  cudaStream_t s, other;
  int *x, *y, *before_device, *before_host;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  MUST(cudaMalloc(&x, bytes));
  MUST(cudaMalloc(&y, bytes));
  MUST(cudaMalloc(&before_device, 8 << 20));
  MUST(cudaMallocHost(&before_host, 1 << 20));
  MUST(cudaMemset(x, 0, bytes));
  MUST(cudaDeviceSynchronize());
  add<<<n / 256, 256, 0, s>>>(x, n, 0);
  add<<<n / 256, 256, 0, other>>>(y, n, 0);
  MUST(cudaDeviceSynchronize());

  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  add<<<n / 256, 256, 0, s>>>(x, n, 1);
  for (std::size_t size : {std::size_t{100}, std::size_t{1} << 20, std::size_t{8} << 20}) {
    void *device = nullptr, *host = nullptr;
    MUST(cudaMalloc(&device, size));
    EXPECT(captures(s));
    MUST(cudaMallocHost(&host, size));
    EXPECT(captures(s));
    MUST(cudaFree(device));
    EXPECT(captures(s));
    MUST(cudaFreeHost(host));
    EXPECT(captures(s));
  }
  MUST(cudaFree(before_device));
  EXPECT(captures(s));
  MUST(cudaFreeHost(before_host));
  EXPECT(captures(s));
  // Another stream works as usual.
  MUST(cudaMemsetAsync(y, 0, bytes, other));
  add<<<n / 256, 256, 0, other>>>(y, n, 5);
  std::vector<int> seen(n);
  MUST(cudaMemcpyAsync(seen.data(), y, bytes, cudaMemcpyDeviceToHost, other));
  MUST(cudaStreamSynchronize(other));
  for (int value : seen) EXPECT(value == 5);
  EXPECT(captures(s));
  add<<<n / 256, 256, 0, s>>>(x, n, 2);
  cudaGraph_t graph = nullptr;
  MUST(cudaStreamEndCapture(s, &graph));
  std::size_t nodes = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 2);
  cudaGraphExec_t exec = nullptr;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpy(seen.data(), x, bytes, cudaMemcpyDeviceToHost));
  for (int value : seen) EXPECT(value == 9);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  return pass("relaxed_capture");
}
