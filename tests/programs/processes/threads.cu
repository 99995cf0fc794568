// Sixteen host threads, each with work of its own on the default stream. Built twice: with the legacy
// default stream, which all share, and with one for each thread.
#include <thread>

#include "../common.hh"

constexpr int threads = 16, rounds = 10, n = 4096;

__global__ void fill(int* data, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = value + i;
}

void work(int thread) {
  int* data;
  std::vector<int> host(n);
  MUST(cudaSetDevice(0));
  MUST(cudaMalloc(&data, n * sizeof(int)));
  for (int round = 0; round < rounds; round++) {
    int value = thread * 1000 + round;
    fill<<<n / 256, 256>>>(data, value);
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(host.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost, 0));
    MUST(cudaStreamSynchronize(0));
    for (int i = 0; i < n; i++) EXPECT(host[i] == value + i);
  }
  MUST(cudaFree(data));
}

int main() {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++) all.emplace_back(work, t);
  for (auto& t : all) t.join();
  return pass("threads");
}
