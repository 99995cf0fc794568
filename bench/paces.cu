// How long each kind of call takes by the driver's own functions, one kind over and over: what apibench shows
// through the runtime, without it. Prints rows: name, value, unit, with tabs between; the median of single
// calls. usage: paces [quick].
#include <cuda.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <semaphore>
#include <thread>
#include <vector>

#include "must.hh"
#include "pacing.hh"

namespace {

int rounds = 1500;
int launches = 5000;
CUcontext context;
CUfunction nothing;
CUstream stream;

const char image[] = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry nothing(.param .u32 a) { ret; }
)";

void row(const char* name, double value) {
  std::printf("%s\t%.4g\tus\n", name, value);
  std::fflush(stdout);
}

void launch(CUstream where = stream) {
  int value = 0;
  void* parameters[] = {&value};
  MUST(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, where, parameters, nullptr));
}

void wait() { MUST(cuStreamSynchronize(stream)); }

template <typename Call>
void pace(const char* name, int count, Call call) {
  row(name, pace_of(static_cast<std::size_t>(count), call));
}

/** Launches of so many threads at once, a stream each; the time of one launch, the wait at the end included.
 */
void threads(const char* name, int count) {
  std::vector<double> took;
  for (int turn = 0; turn < 5; ++turn) {
    std::barrier line(count + 1);
    std::vector<std::thread> all;
    for (int n = 0; n < count; ++n)
      all.emplace_back([&line] {
        CUstream own;
        MUST(cuCtxSetCurrent(context));
        MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
        line.arrive_and_wait();
        for (int i = 0; i < launches; ++i) launch(own);
        MUST(cuStreamSynchronize(own));
        line.arrive_and_wait();
        MUST(cuStreamDestroy(own));
      });
    line.arrive_and_wait();
    const double began = microseconds();
    line.arrive_and_wait();
    took.push_back((microseconds() - began) / (count * launches));
    for (auto& thread : all) thread.join();
  }
  row(name, median(took));
}

void waits() {
  size_t free = 0, total = 0;
  CUevent event;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  pace("mem_get_info", rounds, [&] { MUST(cuMemGetInfo(&free, &total)); });
  pace("event_record", rounds, [&] { MUST(cuEventRecord(event, stream)); });
  pace("event_record_sync", rounds, [&] {
    MUST(cuEventRecord(event, stream));
    MUST(cuEventSynchronize(event));
  });
  pace("launch_sync", rounds, [] {
    launch();
    MUST(cuCtxSynchronize());
  });
  pace("launch_stream_sync", rounds, [] {
    launch();
    wait();
  });
  pace("launch_record_event_sync", rounds, [&] {
    launch();
    MUST(cuEventRecord(event, stream));
    MUST(cuEventSynchronize(event));
  });
}

void many_launches() {
  std::vector<double> submit, sustained;
  for (int turn = 0; turn < 5; ++turn) {
    const double began = microseconds();
    for (int i = 0; i < launches; ++i) {
      if (i == 500) submit.push_back((microseconds() - began) / i);
      launch();
    }
    wait();
    sustained.push_back((microseconds() - began) / launches);
  }
  row("launch_submit", median(submit));
  row("launch_sustained", median(sustained));
  threads("launch_2_threads", 2);
  threads("launch_4_threads", 4);
}

void copies() {
  constexpr size_t most = 1 << 20;
  CUdeviceptr there;
  void* pinned;
  MUST(cuMemAlloc(&there, most));
  MUST(cuMemHostAlloc(&pinned, most, 0));
  std::vector<char> pageable(most, 1);
  std::memset(pinned, 2, most);
  const int half = std::max(10, rounds / 2);
  pace("to_host_pageable_4096", half, [&] { MUST(cuMemcpyDtoH(pageable.data(), there, 4096)); });
  pace("to_host_pinned_4096", half, [&] { MUST(cuMemcpyDtoH(pinned, there, 4096)); });
  pace("to_device_pinned_4096", half, [&] { MUST(cuMemcpyHtoD(there, pinned, 4096)); });
  pace("to_device_pinned_async_4096", half, [&] {
    MUST(cuMemcpyHtoDAsync(there, pinned, 4096, stream));
    wait();
  });
  pace("to_host_pinned_async_4096", half, [&] {
    MUST(cuMemcpyDtoHAsync(pinned, there, 4096, stream));
    wait();
  });
  pace("to_device_pinned_async_1M", half / 4, [&] {
    MUST(cuMemcpyHtoDAsync(there, pinned, most, stream));
    wait();
  });
  pace("to_host_pinned_async_1M", half / 4, [&] {
    MUST(cuMemcpyDtoHAsync(pinned, there, most, stream));
    wait();
  });
  pace("launch_item", half, [&] {
    launch();
    MUST(cuMemcpyDtoHAsync(pageable.data(), there, 4, stream));
    wait();
  });
}

void graph() {
  CUgraph recorded;
  CUgraphExec graph;
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 50; ++i) launch();
  MUST(cuStreamEndCapture(stream, &recorded));
  MUST(cuGraphInstantiateWithFlags(&graph, recorded, 0));
  pace("graph_50_sync", std::max(10, rounds / 3), [&] {
    MUST(cuGraphLaunch(graph, stream));
    wait();
  });
}

/** The program learns from a host function that its work has ended, as JAX's do: the driver is asked nothing.
 */
void host_functions() {
  std::binary_semaphore ended(0);
  const CUhostFn say = [](void* to) { static_cast<std::binary_semaphore*>(to)->release(); };
  const auto await = [&] {
    MUST(cuLaunchHostFunc(stream, say, &ended));
    ended.acquire();
  };
  pace("launch_host_function", rounds, [&] {
    launch();
    await();
  });
  pace("launch_20_host_function", rounds, [&] {
    for (int i = 0; i < 20; ++i) launch();
    await();
  });
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && !std::strcmp(words[1], "quick")) rounds = 40, launches = 600;
  CUdevice device;
  CUmodule module;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuModuleLoadData(&module, image));
  MUST(cuModuleGetFunction(&nothing, module, "nothing"));
  for (int i = 0; i < 300; ++i) launch();
  wait();
  waits();
  many_launches();
  copies();
  graph();
  host_functions();
}
