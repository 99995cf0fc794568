// A thousand host threads that are alive at the same time, each allocating, launching and copying.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../common.hh"

constexpr int n = 64;

__global__ void fill(int* data, int value) { data[threadIdx.x] = value * (int)threadIdx.x; }

struct gate {
  std::mutex mutex;
  std::condition_variable all_here;
  int missing;
  void arrive() {
    std::unique_lock lock(mutex);
    if (--missing == 0) all_here.notify_all();
    all_here.wait(lock, [&] { return missing == 0; });
  }
};

int main(int count, char** values) {
  const int threads = argument(count, values, 1, 1000);
  gate started{{}, {}, threads}, computed{{}, {}, threads};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++) {
    all.emplace_back([&, t] {
      started.arrive();
      int *data, host[n];
      MUST(cudaMalloc(&data, sizeof host));
      fill<<<1, n>>>(data, t);
      MUST(cudaGetLastError());
      computed.arrive();  // no thread ends before all have used CUDA
      MUST(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
      for (int i = 0; i < n; i++) EXPECT(host[i] == t * i);
      MUST(cudaFree(data));
    });
  }
  for (auto& t : all) t.join();
  return pass("thousand_threads");
}
