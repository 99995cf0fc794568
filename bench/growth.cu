// Measures what a launch costs while the program holds more and more: allocations, page-locked blocks,
// modules, threads that have called CUDA once. Prints rows of name, value and unit with tabs between. Each
// state is measured between two bare ones, because the machine's speed changes over time. usage: growth
// [quick]. An ordinary CUDA program.
#include <cuda.h>
#include <cuda_runtime.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "must.hh"
#include "pacing.hh"

namespace {

int batches = 31, batch = 1000;
int bare_states = 0;

__global__ void nothing(int) {}

const char image[] = R"(.version 6.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 kept;
.visible .entry doing_nothing() { ret; }
)";

void measure(const std::string& state) {
  std::vector<double> submit, sustained;
  for (int n = 0; n < batches; ++n) {
    const double began = microseconds();
    for (int i = 0; i < batch; ++i) nothing<<<1, 32>>>(i);
    submit.push_back((microseconds() - began) / batch);
    MUST(cudaDeviceSynchronize());
    sustained.push_back((microseconds() - began) / batch);
  }
  std::printf("submit_%s\t%.5g\tus\nsustained_%s\t%.5g\tus\n", state.c_str(), median(submit), state.c_str(),
              median(sustained));
  std::fflush(stdout);
}

void bare() { measure("bare_" + std::to_string(bare_states++)); }

void allocations(size_t count) {
  std::vector<void*> all(count);
  for (void*& each : all) MUST(cudaMalloc(&each, 4096));
  measure(std::to_string(count) + "_allocations");
  for (void* each : all) MUST(cudaFree(each));
}

void pinned_blocks(size_t count) {
  std::vector<void*> all(count);
  for (void*& each : all) MUST(cudaMallocHost(&each, 4096));
  measure(std::to_string(count) + "_pinned_blocks");
  for (void* each : all) MUST(cudaFreeHost(each));
}

void modules(size_t count) {
  std::vector<CUmodule> all(count);
  for (CUmodule& each : all) {
    CUfunction function;
    MUST(cuModuleLoadData(&each, image));
    MUST(cuModuleGetFunction(&function, each, "doing_nothing"));
    MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  measure(std::to_string(count) + "_modules");
  for (CUmodule each : all) MUST(cuModuleUnload(each));
}

void threads(size_t count) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t there = 0;
  bool over = false;
  std::vector<std::thread> all;
  for (size_t n = 0; n < count; ++n) {
    all.emplace_back([&] {
      nothing<<<1, 32>>>(0);
      MUST(cudaDeviceSynchronize());
      std::unique_lock<std::mutex> lock(mutex);
      ++there;
      changed.notify_all();
      changed.wait(lock, [&] { return over; });
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return there == count; });
  }
  measure(std::to_string(count) + "_threads");
  {
    std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  changed.notify_all();
  for (auto& each : all) each.join();
}

}  // namespace

int main(int count, char** values) {
  const bool quick = count > 1 && std::string(values[1]) == "quick";
  if (quick) batches = 5, batch = 100;
  measure("first");  // the first measurement warms everything
  bare();
  allocations(quick ? 500 : 10000);
  bare();
  pinned_blocks(quick ? 50 : 1000);
  bare();
  modules(quick ? 20 : 1000);
  bare();
  threads(quick ? 8 : 64);
  bare();
  return 0;
}
