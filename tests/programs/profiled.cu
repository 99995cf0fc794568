// Work of every kind in numbers that a test knows: kernels of two names in two streams and the legacy one, a
// graph, fills, copies; then it waits for its end, if the argument "stay" is given. Each part ends with a
// wait.
#include <unistd.h>

#include <cstring>

#include "common.hh"

constexpr int words = 4096, launches = 12, twice_launches = 3, nodes = 5, replays = 3;

__global__ void add(int* p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

template <class T>
__global__ void twice(T* p) {
  p[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

int main(int argc, char** argv) {
  int* device;
  static int host[words];
  MUST(cudaMalloc(&device, sizeof host));
  MUST(cudaMemset(device, 0, sizeof host));
  cudaStream_t streams[2];
  for (cudaStream_t& s : streams) MUST(cudaStreamCreate(&s));
  for (int i = 0; i < launches; i++) {
    add<<<words / 256, 256, 0, streams[i % 2]>>>(device);
    MUST(cudaStreamSynchronize(streams[i % 2]));
  }
  for (int i = 0; i < twice_launches; i++) twice<int><<<words / 128, 128>>>(device);
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[words - 1] == launches << twice_launches);

  cudaGraph_t graph;
  cudaGraphExec_t again;
  MUST(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  for (int i = 0; i < nodes; i++) add<<<words / 256, 256, 0, streams[0]>>>(device);
  MUST(cudaStreamEndCapture(streams[0], &graph));
  MUST(cudaGraphInstantiate(&again, graph, 0));
  for (int i = 0; i < replays; i++) MUST(cudaGraphLaunch(again, streams[0]));
  MUST(cudaStreamSynchronize(streams[0]));
  MUST(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == (launches << twice_launches) + nodes * replays);
  std::printf("PASS\n");
  std::fflush(stdout);
  if (argc > 1 && !std::strcmp(argv[1], "stay")) pause();
  return 0;
}
