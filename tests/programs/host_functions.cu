// Host functions and stream callbacks: order behind kernels and copies, what they may do, who waits for whom.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common.hh"

__global__ void add(int* x, int n) { atomicAdd(x, n); }

namespace {

/// A door that one thread opens and others wait at.
class door {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

struct step {
  const int* value = nullptr;
  std::vector<int>* seen = nullptr;
};

void CUDART_CB note(void* data) {
  const step* s = static_cast<step*>(data);
  s->seen->push_back(*s->value);
}

/// Each function sees the bytes of the copy before it, and they run in the order of the stream.
void order() {
  constexpr int rounds = 200;
  int *device, *host;
  MUST(cudaMalloc(&device, sizeof(int)));
  MUST(cudaMemset(device, 0, sizeof(int)));
  MUST(cudaMallocHost(&host, sizeof(int)));
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  std::vector<int> seen;
  step s{host, &seen};
  for (int i = 0; i < rounds; ++i) {
    add<<<1, 32, 0, stream>>>(device, 1);
    MUST(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    MUST(cudaLaunchHostFunc(stream, note, &s));
  }
  MUST(cudaStreamSynchronize(stream));
  EXPECT(seen.size() == rounds);
  for (int i = 0; i < rounds; ++i) EXPECT(seen[static_cast<std::size_t>(i)] == 32 * (i + 1));
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFreeHost(host));
  MUST(cudaFree(device));
}

struct call {
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaErrorUnknown, malloc = cudaSuccess, sync = cudaSuccess;
  std::thread::id thread;
};

void CUDART_CB observe(cudaStream_t stream, cudaError_t status, void* data) {
  call* c = static_cast<call*>(data);
  c->stream = stream;
  c->status = status;
  c->thread = std::this_thread::get_id();
  void* p = nullptr;
  c->malloc = cudaMalloc(&p, 16);
  c->sync = cudaStreamSynchronize(stream);
}

void callbacks() {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  call c;
  MUST(cudaStreamAddCallback(stream, observe, &c, 0));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(c.stream == stream && c.status == cudaSuccess);
  EXPECT(c.malloc == cudaErrorNotPermitted && c.sync == cudaErrorNotPermitted);
  EXPECT(c.thread != std::this_thread::get_id());
  EXPECT(cudaLaunchHostFunc(stream, nullptr, nullptr) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  MUST(cudaStreamDestroy(stream));
}

void CUDART_CB open_door(void* data) { static_cast<door*>(data)->open(); }
void CUDART_CB pass_door(void* data) { static_cast<door*>(data)->pass(); }

/// The program waits without a CUDA call: somebody must listen all the same.
void silent_wait() {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  for (int i = 0; i < 20; ++i) {
    door done;
    MUST(cudaLaunchHostFunc(stream, open_door, &done));
    done.pass();
    MUST(cudaStreamSynchronize(stream));
  }
  MUST(cudaStreamDestroy(stream));
}

/// While one stream is held by a function, others and the calling thread go on.
void held_stream() {
  constexpr std::size_t n = 3u << 20;
  std::vector<int> in(n), out(n);
  for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<int>(i * 7);
  int *a, *b;
  MUST(cudaMalloc(&a, n * sizeof(int)));
  MUST(cudaMalloc(&b, sizeof(int)));
  cudaStream_t held, free_stream;
  MUST(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking));
  cudaEvent_t behind;
  MUST(cudaEventCreate(&behind));
  door gate;
  MUST(cudaMemsetAsync(b, 0, sizeof(int), held));
  MUST(cudaLaunchHostFunc(held, pass_door, &gate));
  add<<<1, 1, 0, held>>>(b, 5);
  MUST(cudaEventRecord(behind, held));
  for (int round = 0; round < 3; ++round) {
    MUST(cudaMemcpyAsync(a, in.data(), n * sizeof(int), cudaMemcpyHostToDevice, free_stream));
    MUST(cudaMemcpyAsync(out.data(), a, n * sizeof(int), cudaMemcpyDeviceToHost, free_stream));
    MUST(cudaStreamSynchronize(free_stream));
    EXPECT(out == in);
  }
  MUST(cudaMemcpy(a, in.data(), n * sizeof(int),
                  cudaMemcpyHostToDevice));  // the legacy stream waits for neither
  EXPECT(cudaStreamQuery(held) == cudaErrorNotReady && cudaEventQuery(behind) == cudaErrorNotReady);
  gate.open();
  MUST(cudaEventSynchronize(behind));
  int value = 0;
  MUST(cudaMemcpy(&value, b, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 5);
  MUST(cudaEventDestroy(behind));
  MUST(cudaStreamDestroy(held));
  MUST(cudaStreamDestroy(free_stream));
  MUST(cudaFree(a));
  MUST(cudaFree(b));
}

/// A copy from host to host, or to managed memory, waits for its own stream alone.
void copies_beside_held_stream() {
  constexpr int n = 64 << 10, side = 256;
  int *from, *to, *managed;
  std::vector<int> pageable(n);
  MUST(cudaMallocManaged(&managed, side * sizeof(int)));
  MUST(cudaMallocHost(&from, n * sizeof(int)));
  MUST(cudaMallocHost(&to, n * sizeof(int)));
  for (int i = 0; i < n; ++i) from[i] = i * 3, to[i] = 0;
  cudaStream_t held, other;
  MUST(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  door gate;
  MUST(cudaLaunchHostFunc(held, pass_door, &gate));
  MUST(cudaMemcpyAsync(to, from, n * sizeof(int), cudaMemcpyHostToHost, other));
  MUST(cudaStreamSynchronize(other));
  EXPECT(std::equal(from, from + n, to));
  from[0] = 10;
  MUST(cudaMemcpyAsync(pageable.data(), from, n * sizeof(int), cudaMemcpyHostToHost, other));
  MUST(cudaStreamSynchronize(other));
  EXPECT(std::equal(from, from + n, pageable.begin()));
  from[1] = 11;
  MUST(cudaMemcpy(pageable.data(), from, n * sizeof(int), cudaMemcpyHostToHost));
  EXPECT(std::equal(from, from + n, pageable.begin()));
  from[2] = 12;
  MUST(cudaMemcpy2DAsync(pageable.data(), side, from, side, side, n * sizeof(int) / side,
                         cudaMemcpyHostToHost, other));
  EXPECT(std::equal(from, from + n, pageable.begin()));
  MUST(cudaMemcpy(managed, pageable.data(), side * sizeof(int), cudaMemcpyHostToDevice));
  EXPECT(std::equal(managed, managed + side, pageable.begin()));
  gate.open();
  MUST(cudaStreamSynchronize(held));
  // In its own stream it comes behind the function, and is over when the call returns.
  const auto write = [](void* data) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *static_cast<int*>(data) = 13;
  };
  MUST(cudaLaunchHostFunc(held, write, from + 3));
  MUST(cudaMemcpyAsync(to, from, n * sizeof(int), cudaMemcpyHostToHost, held));
  EXPECT(to[3] == 13 && std::equal(from, from + n, to));
  MUST(cudaStreamDestroy(held));
  MUST(cudaStreamDestroy(other));
  MUST(cudaFreeHost(from));
  MUST(cudaFreeHost(to));
  MUST(cudaFree(managed));
}

/// A synchronous copy stands behind a function of a blocking stream, and both come to their end.
void copy_behind_function() {
  constexpr std::size_t n = 40u << 20;
  std::vector<char> in(n, 1), out(n);
  char* a;
  MUST(cudaMalloc(&a, n));
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  for (int i = 0; i < 3; ++i) {
    std::atomic<int> calls{0};
    const auto count = [](void* data) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++*static_cast<std::atomic<int>*>(data);
    };
    for (int k = 0; k < 3; ++k) MUST(cudaLaunchHostFunc(stream, count, &calls));
    MUST(cudaMemcpy(a, in.data(), n, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(out.data(), a, n, cudaMemcpyDeviceToHost));
    EXPECT(calls == 3 && out == in);
  }
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(a));
}

/// For tests that kill the program: a stream that never goes on.
[[noreturn]] void hold() {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  const auto forever = [](void*) {
    std::puts("held");
    std::fflush(stdout);
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  };
  MUST(cudaLaunchHostFunc(stream, forever, nullptr));
  cudaStreamSynchronize(stream);
  std::exit(1);
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) hold();
  order();
  callbacks();
  silent_wait();
  held_stream();
  copies_beside_held_stream();
  copy_behind_function();
  std::printf("PASS host_functions\n");
  return 0;
}
