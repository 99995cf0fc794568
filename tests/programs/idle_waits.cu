// Waits for what has nothing left to do, between waits that must not return early: work begun by another
// thread, on another stream, in another default stream, through a graph. Memory that kernels and the host
// share shows whether a wait returned too early.
#include <atomic>
#include <thread>

#include "common.hh"

__global__ void slowly(volatile int* out, int value, int rounds) {
  unsigned x = value;
  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  *out = x == 0 ? -1 : value;
}

namespace {

constexpr int rounds = 60, length = 20000;
int* seen = nullptr;       // the host's view
int* on_device = nullptr;  // the kernels'

void idle_again(cudaStream_t stream, cudaEvent_t event) {
  for (int i = 0; i < 10; ++i) {
    MUST(cudaDeviceSynchronize());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamQuery(stream));
    MUST(cudaStreamSynchronize(nullptr));
    MUST(cudaEventSynchronize(event));
    MUST(cudaEventQuery(event));
  }
}

/// Another thread launches and signals; only then does this thread wait, with `wait`.
template <class Begin, class Wait>
void from_another_thread(cudaStream_t stream, cudaEvent_t event, Begin begin, Wait wait) {
  std::atomic<int> asked{0}, begun{0};
  std::thread other([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (asked.load() < round) std::this_thread::yield();
      begin(round);
      begun = round;
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    idle_again(stream, event);
    asked = round;
    while (begun.load() < round) std::this_thread::yield();
    wait();
    EXPECT(*static_cast<volatile int*>(seen) == round);
  }
  other.join();
}

}  // namespace

int main() {
  MUST(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer(&on_device, seen, 0));
  cudaStream_t stream = nullptr, apart = nullptr;
  cudaEvent_t event = nullptr;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  MUST(cudaEventCreate(&event));
  const auto launch = [&](cudaStream_t on) {
    return [on](int round) {
      slowly<<<1, 1, 0, on>>>(on_device, round, length);
      MUST(cudaGetLastError());
    };
  };
  from_another_thread(stream, event, launch(stream), [&] { MUST(cudaDeviceSynchronize()); });
  from_another_thread(stream, event, launch(stream), [&] { MUST(cudaStreamSynchronize(stream)); });
  from_another_thread(stream, event, launch(nullptr), [&] { MUST(cudaStreamSynchronize(nullptr)); });
  from_another_thread(stream, event, launch(apart), [&] { MUST(cudaDeviceSynchronize()); });
  from_another_thread(stream, event, launch(stream), [&] {
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    }
  });
  const auto launch_and_record = [&](int round) {
    slowly<<<1, 1, 0, apart>>>(on_device, round, length);
    MUST(cudaEventRecord(event, apart));
  };
  from_another_thread(stream, event, launch_and_record, [&] { MUST(cudaEventSynchronize(event)); });
  from_another_thread(stream, event, launch_and_record, [&] {
    while (cudaEventQuery(event) == cudaErrorNotReady) {
    }
  });

  // A graph that records the event: nothing of the launch names it.
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  MUST(cudaStreamBeginCapture(apart, cudaStreamCaptureModeThreadLocal));
  slowly<<<1, 1, 0, apart>>>(on_device, 7, length);
  MUST(cudaEventRecordWithFlags(event, apart, cudaEventRecordExternal));
  MUST(cudaStreamEndCapture(apart, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < rounds; ++round) {
    idle_again(stream, event);
    *seen = 0;
    MUST(cudaGraphLaunch(exec, apart));
    MUST(cudaEventSynchronize(event));
    EXPECT(*static_cast<volatile int*>(seen) == 7);
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));

  // While a stream is captured, waiting for the device is an error, idle or not.
  MUST(cudaDeviceSynchronize());
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  MUST(cudaDeviceSynchronize());
  std::printf("PASS idle_waits\n");
  return 0;
}
