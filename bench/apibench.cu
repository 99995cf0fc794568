// Measures what a CUDA program pays for each kind of call. Prints one row for each measurement: name, value,
// unit, with tabs between. usage: apibench [quick | link | first | bulk]; quick repeats less; link also
// copies less, for long and narrow links; first measures only the start; bulk measures only large copies. An
// ordinary CUDA program: nothing here knows of Outboard.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "must.hh"

namespace {

using steady = std::chrono::steady_clock;

int divisor = 1;                  // divides all repeat counts if quick
size_t most = size_t(256) << 20;  // the largest copy
size_t least = 4;                 // the smallest
int large_repeats = 5;
int times(int full) { return std::max(3, full / divisor); }

double microseconds(steady::time_point since) {
  return std::chrono::duration<double, std::micro>(steady::now() - since).count();
}

void row(const std::string& name, double value, const char* unit) {
  std::printf("%s\t%.5g\t%s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

/// Median of the times of single calls.
template <class Call>
double typical(int repeats, Call&& call) {
  std::vector<double> each(repeats);
  for (double& time : each) {
    const auto began = steady::now();
    call();
    time = microseconds(began);
  }
  std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
  return each[repeats / 2];
}

__global__ void nothing(int) {}
__global__ void add_one(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1.0f;
}

void start() {
  const auto began = steady::now();
  MUST(cudaFree(nullptr));
  row("first_call", microseconds(began) / 1e3, "ms");
  nothing<<<1, 32>>>(0);
  MUST(cudaDeviceSynchronize());
  row("first_kernel_done", microseconds(began) / 1e3, "ms");
}

void launches() {
  for (int i = 0; i < times(1000); ++i) nothing<<<1, 32>>>(i);  // the first calls cost more
  MUST(cudaDeviceSynchronize());
  const int count = times(20000);
  const auto began = steady::now();
  for (int i = 0; i < count; ++i) nothing<<<1, 32>>>(i);
  row("launch_submit", microseconds(began) / count, "us");
  MUST(cudaDeviceSynchronize());
  row("launch_throughput", microseconds(began) / count, "us");
  row("launch_sync",
      typical(times(2000),
              [] {
                nothing<<<1, 32>>>(0);
                MUST(cudaDeviceSynchronize());
              }),
      "us");
}

void idle_calls(cudaStream_t stream) {
  row("stream_sync_idle", typical(times(2000), [&] { MUST(cudaStreamSynchronize(stream)); }), "us");
  row("stream_query_idle", typical(times(2000), [&] { MUST(cudaStreamQuery(stream)); }), "us");
  row("device_sync_idle", typical(times(2000), [&] { MUST(cudaDeviceSynchronize()); }), "us");
  int device;
  row("get_device", typical(times(2000), [&] { MUST(cudaGetDevice(&device)); }), "us");
  size_t free_bytes, total_bytes;
  row("mem_get_info", typical(times(200), [&] { MUST(cudaMemGetInfo(&free_bytes, &total_bytes)); }), "us");
}

void events(cudaStream_t stream) {
  cudaEvent_t event;
  row("event_create_destroy",
      typical(times(500),
              [&] {
                MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
                MUST(cudaEventDestroy(event));
              }),
      "us");
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  row("event_record", typical(times(2000), [&] { MUST(cudaEventRecord(event, stream)); }), "us");
  row("event_record_sync",
      typical(times(2000),
              [&] {
                MUST(cudaEventRecord(event, stream));
                MUST(cudaEventSynchronize(event));
              }),
      "us");
  MUST(cudaEventDestroy(event));
}

void allocations(cudaStream_t stream) {
  void* memory;
  for (size_t size : {size_t(4) << 10, size_t(1) << 20, size_t(64) << 20}) {
    row("malloc_free_" + std::to_string(size >> 10) + "K",
        typical(times(200),
                [&] {
                  MUST(cudaMalloc(&memory, size));
                  MUST(cudaFree(memory));
                }),
        "us");
  }
  row("malloc_free_async_1024K",
      typical(times(500),
              [&] {
                MUST(cudaMallocAsync(&memory, 1 << 20, stream));
                MUST(cudaFreeAsync(memory, stream));
              }),
      "us");
  MUST(cudaStreamSynchronize(stream));
}

/// Shows small copies by their time, large ones by bytes per second.
void copy_row(const std::string& kind, size_t size, double time) {
  if (size < 1 << 20) {
    row(kind + "_" + std::to_string(size), time, "us");
  } else {
    row(kind + "_" + std::to_string(size >> 20) + "M", size / time / 1e3, "GB/s");
  }
}

/// Bytes that cannot be compressed, so that the measurement is of the transport, not of the data.
void fill(char* at, size_t size) {
  std::uint64_t state = 88172645463325252u;
  for (size_t i = 0; i + sizeof state <= size; i += sizeof state) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(at + i, &state, sizeof state);
  }
}

void copies(cudaStream_t stream) {
  char *device, *pinned;
  MUST(cudaMalloc(&device, most));
  MUST(cudaMallocHost(&pinned, most));
  std::vector<char> pageable(most, 1);
  fill(pageable.data(), most);
  std::memcpy(pinned, pageable.data(), most);
  for (size_t size : {size_t(4), size_t(4) << 10, size_t(64) << 10, size_t(1) << 20, size_t(16) << 20,
                      size_t(64) << 20, size_t(256) << 20}) {
    if (size < least || size > most || (size == size_t(64) << 20 && size < most)) continue;
    const int repeats = size >= 16 << 20 ? large_repeats : times(200);
    const auto measure = [&](const char* kind, void* to, const void* from, cudaMemcpyKind way, bool async) {
      copy_row(kind, size, typical(repeats, [&] {
                 if (async) {
                   MUST(cudaMemcpyAsync(to, from, size, way, stream));
                   MUST(cudaStreamSynchronize(stream));
                 } else {
                   MUST(cudaMemcpy(to, from, size, way));
                 }
               }));
    };
    measure("to_device_pageable", device, pageable.data(), cudaMemcpyHostToDevice, false);
    measure("to_host_pageable", pageable.data(), device, cudaMemcpyDeviceToHost, false);
    measure("to_device_pinned", device, pinned, cudaMemcpyHostToDevice, false);
    measure("to_host_pinned", pinned, device, cudaMemcpyDeviceToHost, false);
    measure("to_device_pinned_async", device, pinned, cudaMemcpyHostToDevice, true);
    measure("to_host_pinned_async", pinned, device, cudaMemcpyDeviceToHost, true);
  }
  // A fast copy with wrong bytes is worthless, so a pattern travels there and back.
  for (size_t i = 0; i < most; i += 4099) pageable[i] = static_cast<char>(i * 31);
  MUST(cudaMemcpy(device, pageable.data(), most, cudaMemcpyHostToDevice));
  std::memset(pinned, 0, most);
  MUST(cudaMemcpy(pinned, device, most, cudaMemcpyDeviceToHost));
  if (std::memcmp(pinned, pageable.data(), most) != 0) {
    std::fprintf(stderr, "FAIL: what came back is not what was sent\n");
    std::exit(1);
  }
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
}

/// The program page-locks its own memory and copies quarters of it in four streams, several times, with one
/// wait at the end.
void registered_copies() {
  constexpr int parts = 4, rounds = 8;
  const size_t size = std::min(most, size_t(64) << 20), part = size / parts;
  std::vector<char> own(size, 2);
  fill(own.data(), size);
  const std::vector<char> sent = own;
  char* device;
  cudaStream_t streams[parts];
  MUST(cudaMalloc(&device, size));
  MUST(cudaHostRegister(own.data(), size, cudaHostRegisterDefault));
  for (auto& stream : streams) MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto measure = [&](const char* name, bool to_host) {
    const double time = typical(3, [&] {
      for (int round = 0; round < rounds; ++round) {
        for (int n = 0; n < parts; ++n) {
          char *there = device + n * part, *here = own.data() + n * part;
          MUST(cudaMemcpyAsync(to_host ? here : there, to_host ? there : here, part, cudaMemcpyDefault,
                               streams[n]));
        }
      }
      MUST(cudaDeviceSynchronize());
    });
    row(name, rounds * size / time / 1e3, "GB/s");
  };
  measure("to_device_registered_4_streams", false);
  std::fill(own.begin(), own.end(), 0);
  measure("to_host_registered_4_streams", true);
  if (own != sent) {
    std::fprintf(stderr, "FAIL: registered memory does not hold what was sent\n");
    std::exit(1);
  }
  for (auto& stream : streams) MUST(cudaStreamDestroy(stream));
  MUST(cudaHostUnregister(own.data()));
  MUST(cudaFree(device));
}

void threads() {
  constexpr int workers = 4;
  const int count = times(5000);
  const auto began = steady::now();
  std::vector<std::thread> all;
  for (int n = 0; n < workers; ++n) {
    all.emplace_back([count] {
      cudaStream_t own;
      MUST(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
      for (int i = 0; i < count; ++i) nothing<<<1, 32, 0, own>>>(i);
      MUST(cudaStreamSynchronize(own));
      MUST(cudaStreamDestroy(own));
    });
  }
  for (auto& each : all) each.join();
  row("launch_throughput_4_threads", microseconds(began) / (workers * count), "us");
}

void graph(cudaStream_t stream) {
  constexpr int kernels = 50, count = 1024;
  float* values;
  MUST(cudaMalloc(&values, count * sizeof *values));
  MUST(cudaMemsetAsync(values, 0, count * sizeof *values, stream));
  cudaGraph_t captured;
  cudaGraphExec_t ready;
  const cudaError_t begun = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (begun == cudaErrorNotSupported) {
    std::fprintf(stderr, "no graphs on this device: their rows are left out\n");
    MUST(cudaFree(values));
    return;
  }
  MUST(begun);
  for (int i = 0; i < kernels; ++i) add_one<<<4, 256, 0, stream>>>(values, count);
  MUST(cudaStreamEndCapture(stream, &captured));
  const auto began = steady::now();
  MUST(cudaGraphInstantiate(&ready, captured, 0));
  row("graph_instantiate_50", microseconds(began), "us");
  int launched = 0;
  row("graph_launch_50_sync",
      typical(times(200),
              [&] {
                MUST(cudaGraphLaunch(ready, stream));
                MUST(cudaStreamSynchronize(stream));
                ++launched;
              }),
      "us");
  float first;
  MUST(cudaMemcpy(&first, values, sizeof first, cudaMemcpyDeviceToHost));
  if (first != float(kernels * launched)) {
    std::fprintf(stderr, "FAIL: %d graph launches counted as %g kernels\n", launched, first);
    std::exit(1);
  }
  MUST(cudaGraphExecDestroy(ready));
  MUST(cudaGraphDestroy(captured));
  MUST(cudaFree(values));
}

}  // namespace

int main(int count, char** values) {
  const std::string how = count > 1 ? values[1] : "";
  if (how == "quick") divisor = 20, most = size_t(64) << 20;
  if (how == "link") divisor = 20, most = size_t(16) << 20, large_repeats = 3;
  const auto began = steady::now();
  start();
  if (how == "first") return 0;
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (how == "bulk") {
    least = size_t(1) << 20;
    registered_copies();
    copies(stream);
    return 0;
  }
  launches();
  idle_calls(stream);
  events(stream);
  allocations(stream);
  copies(stream);
  registered_copies();
  threads();
  graph(stream);
  MUST(cudaStreamDestroy(stream));
  MUST(cudaDeviceSynchronize());
  row("all", microseconds(began) / 1e3, "ms");
  return 0;
}
