// What CUDA promises about copies: their bytes are there whichever way the program learns that they are done;
// sources that are read during the call; copies of nothing, at offsets, over borders of allocations, of which
// the kind is not said; system calls that write page-locked memory; refused copies, which touch nothing.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "common.hh"

__global__ void fill(int* x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value + i;
}

namespace {

constexpr int n = 1 << 18;
constexpr std::size_t bytes = n * sizeof(int);

struct stream {
  cudaStream_t s = nullptr;
  explicit stream(unsigned flags = cudaStreamNonBlocking) { MUST(cudaStreamCreateWithFlags(&s, flags)); }
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};

bool is(const int* x, int value) {
  for (int i = 0; i < n; ++i) {
    if (x[i] != value + i) return false;
  }
  return true;
}

/// Each way to learn that a copy to page-locked memory is complete, from the same thread or another.
void seen_by_every_way() {
  int *device, *host, *other_device;
  MUST(cudaMalloc(&device, bytes));
  MUST(cudaMalloc(&other_device, 64));
  MUST(cudaMallocHost(&host, bytes));
  stream s, other;
  const stream blocking(cudaStreamDefault);
  cudaEvent_t e;
  MUST(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  const auto polled = [](auto query) {
    cudaError_t state;
    while ((state = query()) == cudaErrorNotReady) {
    }
    MUST(state);
  };
  int small = 0, *small_locked;
  MUST(cudaMallocHost(&small_locked, 64));
  std::vector<int*> gone(3);
  for (int*& each : gone) MUST(cudaMalloc(&each, 64));
  struct look {
    const int* host;
    int value;
    bool right;
  };
  const std::pair<cudaStream_t, std::function<void(int)>> ways[] = {
      {s, [&](int) { MUST(cudaStreamSynchronize(s)); }},
      {s, [&](int) { MUST(cudaDeviceSynchronize()); }},
      {s, [&](int) { polled([&] { return cudaStreamQuery(s); }); }},
      {s, [&](int) { MUST(cudaEventSynchronize(e)); }},
      {s, [&](int) { polled([&] { return cudaEventQuery(e); }); }},
      {s,
       [&](int) {
         MUST(cudaStreamWaitEvent(other, e, 0));
         MUST(cudaStreamSynchronize(other));
       }},
      {s,
       [&](int) {
         MUST(cudaStreamWaitEvent(other, e, 0));
         polled([&] { return cudaStreamQuery(other); });
       }},
      {blocking, [&](int) { MUST(cudaMemcpy(&small, other_device, 4, cudaMemcpyDeviceToHost)); }},
      {blocking, [&](int) { MUST(cudaStreamSynchronize(nullptr)); }},
      // Copies to the device that the program waits for, and a free, come behind what was to be done before.
      {blocking, [&](int) { MUST(cudaMemcpy(other_device, &small, 4, cudaMemcpyHostToDevice)); }},
      {blocking, [&](int) { MUST(cudaMemcpy(other_device, small_locked, 64, cudaMemcpyHostToDevice)); }},
      {blocking,
       [&](int) { MUST(cudaMemcpy2D(other_device, 8, small_locked, 16, 4, 3, cudaMemcpyHostToDevice)); }},
      {s,
       [&](int) {
         MUST(cudaMemcpy(other_device, &small, 4,
                         cudaMemcpyHostToDevice));  // this one waits for nothing there
         MUST(cudaStreamWaitEvent(nullptr, e, 0));
         MUST(cudaMemcpy(other_device, &small, 4, cudaMemcpyHostToDevice));
       }},
      {blocking,
       [&](int) {
         MUST(cudaFree(gone.back()));
         gone.pop_back();
       }},
      {s, [&](int) { std::thread([&] { MUST(cudaEventSynchronize(e)); }).join(); }},
      {s,
       [&](int value) {
         look l{host, value, false};
         MUST(cudaStreamWaitEvent(other, e, 0));
         MUST(cudaLaunchHostFunc(
             other,
             [](void* data) {
               look* at = static_cast<look*>(data);
               at->right = is(at->host, at->value);
             },
             &l));
         MUST(cudaStreamSynchronize(other));
         EXPECT(l.right);
       }},
  };
  int value = 1000;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [on, learn] : ways) {
      value += n;
      fill<<<n / 256, 256, 0, on>>>(device, n, value);
      MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, on));
      MUST(cudaEventRecord(e, on));
      learn(value);
      EXPECT(is(host, value));
    }
  }
  MUST(cudaEventDestroy(e));
  MUST(cudaFreeHost(host));
  MUST(cudaFreeHost(small_locked));
  MUST(cudaFree(device));
  MUST(cudaFree(other_device));
}

/// The same of a graph's copy.
void copied_by_a_graph_before() {
  int *host, *device, small = 0;
  MUST(cudaMallocHost(&host, bytes));
  MUST(cudaMalloc(&device, bytes + 64));
  const stream blocking(cudaStreamDefault);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
  MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, blocking));
  MUST(cudaStreamEndCapture(blocking, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (int value = n; value < 5 * n; value += n) {
    fill<<<n / 256, 256, 0, blocking>>>(device, n, value);
    MUST(cudaGraphLaunch(exec, blocking));
    MUST(cudaMemcpy(device + n, &small, sizeof small, cudaMemcpyHostToDevice));
    EXPECT(is(host, value));
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFreeHost(host));
  MUST(cudaFree(device));
}

/// The same of what a kernel wrote to memory of the host.
void written_before_a_copy(bool managed) {
  int *host, *seen, *device, value = 0;
  if (managed) {
    MUST(cudaMallocManaged(&host, bytes));
    seen = host;
  } else {
    MUST(cudaHostAlloc(&host, bytes, cudaHostAllocMapped));
    MUST(cudaHostGetDevicePointer(&seen, host, 0));
  }
  MUST(cudaMalloc(&device, 64));
  const stream blocking(cudaStreamDefault);
  for (int round = 0; round < 3; ++round) {
    value += n;
    fill<<<n / 256, 256, 0, blocking>>>(seen, n, value);
    MUST(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
    EXPECT(is(host, value));
  }
  MUST(managed ? cudaFree(host) : cudaFreeHost(host));
  MUST(cudaFree(device));
}

/// A copy from page-locked memory reads it when its turn comes: behind a function that writes there.
void written_by_a_host_function(bool registered) {
  std::vector<int> own(n);
  int *device, *host = own.data();
  MUST(cudaMalloc(&device, bytes));
  if (registered) {
    MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
  } else {
    MUST(cudaMallocHost(&host, bytes));
  }
  const stream s;
  struct order {
    int *at, value;
  };
  std::vector<int> seen(n);
  for (int value : {100, 200, 300}) {
    std::memset(host, 0, bytes);
    order o{host, value};
    MUST(cudaLaunchHostFunc(
        s,
        [](void* data) {
          const order* next = static_cast<order*>(data);
          usleep(20000);
          for (int i = 0; i < n; ++i) next->at[i] = next->value + i;
        },
        &o));
    MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s));
    MUST(cudaStreamSynchronize(s));
    MUST(cudaMemcpy(seen.data(), device, bytes, cudaMemcpyDeviceToHost));
    EXPECT(is(seen.data(), value));
  }
  MUST(registered ? cudaHostUnregister(host) : cudaFreeHost(host));
  MUST(cudaFree(device));
}

/// A source that is to be read during the call may be changed once that returns, though the stream has other
/// things to do first.
void read_during_the_call(bool box) {
  int *to, *device, *host;
  MUST(cudaMalloc(&to, bytes));
  MUST(cudaMalloc(&device, bytes));
  MUST(cudaMallocHost(&host, bytes));
  const stream s, other;
  std::vector<int> seen(n);
  for (int* from : {host, device}) {
    fill<<<n / 256, 256, 0, other>>>(device, n, 500);
    MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, other));
    MUST(cudaMemsetAsync(to, 0, bytes, other));
    MUST(cudaStreamSynchronize(other));
    MUST(cudaLaunchHostFunc(
        s, [](void*) { usleep(20000); }, nullptr));
    if (box) {
      cudaMemcpy3DBatchOp part{};
      part.src.type = part.dst.type = cudaMemcpyOperandTypePointer;
      part.src.op.ptr.ptr = from, part.dst.op.ptr.ptr = to;
      part.extent = {bytes / 256, 256, 1};
      part.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
      MUST(cudaMemcpy3DBatchAsync(1, &part, 0, s));
    } else {
      cudaMemcpyAttributes now{};
      now.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
      const void* source = from;
      void* target = to;
      std::size_t size = bytes, first = 0;
      MUST(cudaMemcpyBatchAsync(&target, &source, &size, 1, &now, &first, 1, s));
    }
    std::memset(host, 0, bytes);
    MUST(cudaMemsetAsync(device, 0, bytes, other));
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamSynchronize(s));
    MUST(cudaMemcpy(seen.data(), to, bytes, cudaMemcpyDeviceToHost));
    EXPECT(is(seen.data(), 500));
  }
  MUST(cudaFreeHost(host));
  MUST(cudaFree(device));
  MUST(cudaFree(to));
}

void copies_of_nothing() {
  char *device, *pinned, *managed, pageable[16] = "unchanged";
  MUST(cudaMalloc(&device, 64));
  MUST(cudaMallocHost(&pinned, 64));
  MUST(cudaMallocManaged(&managed, 64));
  const stream s;
  for (char* to : {device, pinned, managed, pageable}) {
    for (char* from : {device, pinned, managed, pageable}) {
      MUST(cudaMemcpy(to, from, 0, cudaMemcpyDefault));
      MUST(cudaMemcpyAsync(to, from, 0, cudaMemcpyDefault, s));
    }
    MUST(cudaMemcpy2D(to, 8, pageable, 8, 0, 3, cudaMemcpyDefault));
    MUST(cudaMemcpy2D(to, 8, pageable, 8, 3, 0, cudaMemcpyDefault));
  }
  MUST(cudaMemset(device, 1, 0));
  MUST(cudaMemsetAsync(device, 1, 0, s));
  MUST(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  MUST(cudaDeviceSynchronize());
  EXPECT(std::strcmp(pageable, "unchanged") == 0);
  MUST(cudaFree(managed));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
}

/// Of every kind of memory to every other, from the middle to the middle, with the kind found out.
void at_offsets() {
  constexpr std::size_t size = 10000, from_at = 777, to_at = 1333, count = 5001;
  char *device[2], *pinned[2], *managed[2];
  std::vector<char> pageable[2] = {std::vector<char>(size), std::vector<char>(size)};
  for (int i : {0, 1}) {
    MUST(cudaMalloc(&device[i], size));
    MUST(cudaMallocHost(&pinned[i], size));
    MUST(cudaMallocManaged(&managed[i], size));
  }
  std::vector<char> content(size), seen(size);
  numbers random;
  for (char& c : content) c = static_cast<char>(random.next());
  const stream s;
  for (bool async : {false, true}) {
    for (char* from : {device[0], pinned[0], managed[0], pageable[0].data()}) {
      MUST(cudaMemcpy(from, content.data(), size, cudaMemcpyDefault));
      for (char* to : {device[1], pinned[1], managed[1], pageable[1].data()}) {
        const std::vector<char> empty(size, 0x11);
        MUST(cudaMemcpy(to, empty.data(), size, cudaMemcpyDefault));
        MUST(cudaDeviceSynchronize());
        if (async) {
          MUST(cudaMemcpyAsync(to + to_at, from + from_at, count, cudaMemcpyDefault, s));
          MUST(cudaStreamSynchronize(s));
        } else {
          MUST(cudaMemcpy(to + to_at, from + from_at, count, cudaMemcpyDefault));
        }
        MUST(cudaMemcpy(seen.data(), to, size, cudaMemcpyDefault));
        EXPECT(std::memcmp(&seen[to_at], &content[from_at], count) == 0);
        EXPECT(seen[to_at - 1] == 0x11 && seen[to_at + count] == 0x11);
      }
    }
  }
  for (int i : {0, 1}) {
    MUST(cudaFree(device[i]));
    MUST(cudaFreeHost(pinned[i]));
    MUST(cudaFree(managed[i]));
  }
}

/// The network writes into page-locked memory while kernels and copies use other parts of it.
void sockets() {
  int pair[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  int *in, *out, *device;
  MUST(cudaMallocHost(&in, bytes));
  MUST(cudaMallocHost(&out, bytes));
  MUST(cudaMalloc(&device, bytes));
  const auto all = [](auto transfer, char* at) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = transfer(at + done, bytes - done);
      EXPECT(got > 0);
      done += static_cast<std::size_t>(got);
    }
  };
  for (int round = 0; round < 3; ++round) {
    fill<<<n / 256, 256>>>(device, n, round);
    MUST(cudaMemcpy(out, device, bytes, cudaMemcpyDeviceToHost));
    std::thread sender([&] {
      all([&](char* at, std::size_t size) { return send(pair[0], at, size, 0); },
          reinterpret_cast<char*>(out));
    });
    all([&](char* at, std::size_t size) { return recv(pair[1], at, size, 0); }, reinterpret_cast<char*>(in));
    sender.join();
    MUST(cudaMemsetAsync(device, 0, bytes));
    MUST(cudaMemcpyAsync(device, in, bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpyAsync(out, device, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaDeviceSynchronize());
    EXPECT(is(out, round) && write(pair[0], out, 16) == 16 && read(pair[1], in, 16) == 16);
    EXPECT(in[3] == round + 3);
  }
  close(pair[0]);
  close(pair[1]);
  MUST(cudaFree(device));
  MUST(cudaFreeHost(in));
  MUST(cudaFreeHost(out));
}

/// What is refused is refused before the program's memory is touched: it may end where the program ends it.
void refused_copies() {
  char* edge =
      static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT(munmap(edge + 4096, 4096) == 0);
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  MUST(cudaMallocArray(&array, &format, 256, 4));
  MUST(cudaMemcpy2DToArray(array, 0, 0, edge, 1024, 1024, 4, cudaMemcpyHostToDevice));
  EXPECT(cudaMemcpy2DToArray(array, 0, 0, edge, 1024, 1024, 5, cudaMemcpyHostToDevice) ==
         cudaErrorInvalidValue);
  EXPECT(cudaMemcpy2DToArray(array, 0, 1, edge, 1024, 1024, 4, cudaMemcpyHostToDevice) ==
         cudaErrorInvalidValue);
  EXPECT(cudaMemcpy2DToArray(array, 4, 0, edge, 1024, 1024, 4, cudaMemcpyHostToDevice) ==
         cudaErrorInvalidValue);
  EXPECT(cudaMemcpy2DFromArray(edge, 1024, array, 0, 0, 1024, 5, cudaMemcpyDeviceToHost) ==
         cudaErrorInvalidValue);
  char *device = nullptr, *pinned = nullptr;
  const stream s;
  MUST(cudaMalloc(&device, 1000));
  MUST(cudaMallocHost(&pinned, 900));
  MUST(cudaMemcpy(device, edge, 1000, cudaMemcpyHostToDevice));
  const auto refused = [](cudaError_t e) { return e == cudaErrorInvalidValue; };
  EXPECT(refused(cudaMemcpy(device, edge, 1001, cudaMemcpyHostToDevice)));
  EXPECT(refused(cudaMemcpy(device, edge, 1 << 20, cudaMemcpyHostToDevice)));
  EXPECT(refused(cudaMemcpyAsync(device + 1, edge, 1000, cudaMemcpyHostToDevice, s)));
  EXPECT(refused(cudaMemcpy(edge, device, 1001, cudaMemcpyDeviceToHost)));
  EXPECT(refused(cudaMemcpyAsync(device, pinned, 901, cudaMemcpyHostToDevice, s)));
  EXPECT(refused(cudaMemcpyAsync(pinned, device, 901, cudaMemcpyDeviceToHost, s)));
  EXPECT(refused(cudaMemcpy2D(device, 100, edge, 100, 100, 11, cudaMemcpyHostToDevice)));
  MUST(cudaMemcpy2D(device, 100, edge, 100, 100, 10, cudaMemcpyHostToDevice));
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
  MUST(cudaFreeArray(array));
  munmap(edge, 4096);
}

bool all_are(const unsigned char* p, std::size_t count, int value) {
  for (std::size_t i = 0; i < count; i++)
    if (p[i] != value) return std::printf("byte %zu is %d, not %d\n", i, p[i], value), false;
  return true;
}

/// A fill that is no stream's, or a copy between addresses of devices, is over when it returns, where it
/// writes memory of the host.
void fills_of_the_host() {
  constexpr std::size_t size = 1 << 20;
  unsigned char* device = nullptr;
  MUST(cudaMalloc(&device, size));
  unsigned char *pinned = nullptr, *managed = nullptr, *there = nullptr;
  MUST(cudaMallocHost(&pinned, size));
  MUST(cudaMallocManaged(&managed, size));
  auto* own = static_cast<unsigned char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT(own != MAP_FAILED);
  MUST(cudaHostRegister(own, size, cudaHostRegisterMapped));
  MUST(cudaHostGetDevicePointer(&there, own, 0));
  const auto shown = [&](unsigned char* to, const unsigned char* here, int value) {
    MUST(cudaMemset(to, value, size));
    EXPECT(all_are(here, size, value));
    MUST(cudaMemset2D(to, 1024, value + 1, 512, size / 1024));
    EXPECT(all_are(here + size - 1024, 512, value + 1) && all_are(here + size - 512, 512, value));
    MUST(cudaMemset(device, value + 2, size));
    MUST(cudaMemcpy(to, device, size, cudaMemcpyDeviceToDevice));
    EXPECT(all_are(here, size, value + 2));
    MUST(cudaMemset(device, value, size));
    MUST(cudaMemcpyPeer(to, 0, device, 0, size));
    EXPECT(all_are(here, size, value));
  };
  for (int round = 1; round <= 5; round++) {
    shown(pinned, pinned, 3 * round);
    shown(managed, managed, 3 * round);
    shown(there, own, 3 * round);
  }
  MUST(cudaHostUnregister(own));
  munmap(own, size);
  MUST(cudaFree(managed));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
}

__global__ void until_told(volatile unsigned* word) {
  while (*word == 0) {
  }
}

/// What waits does so for its own stream: another one may be at work until the host says something, or
/// captured.
void fills_beside_others() {
  constexpr std::size_t size = 1 << 20;
  unsigned char *pinned = nullptr, *device = nullptr;
  unsigned *word = nullptr, *there = nullptr;
  cudaStream_t busy, captured;
  MUST(cudaMallocHost(&pinned, size));
  MUST(cudaMalloc(&device, size));
  MUST(cudaHostAlloc(&word, sizeof *word, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer(&there, word, 0));
  MUST(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  *word = 0;
  until_told<<<1, 1, 0, busy>>>(there);
  MUST(cudaGetLastError());
  MUST(cudaMemset(pinned, 7, size));
  EXPECT(all_are(pinned, size, 7));
  MUST(cudaMemcpy2D(device, 1024, pinned, 1024, 1024, size / 1024, cudaMemcpyHostToDevice));
  MUST(cudaMemset(pinned, 8, size));
  MUST(cudaMemcpy(pinned, device, size, cudaMemcpyDeviceToDevice));
  EXPECT(all_are(pinned, size, 7));
  EXPECT(cudaStreamQuery(busy) == cudaErrorNotReady);
  *word = 1;
  MUST(cudaStreamSynchronize(busy));

  cudaGraph_t graph;
  MUST(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
  std::thread other([&] {
    MUST(cudaMemset(pinned, 9, size));
    EXPECT(all_are(pinned, size, 9));
  });
  other.join();
  MUST(cudaMemsetAsync(device, 1, size, captured));
  MUST(cudaStreamEndCapture(captured, &graph));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(busy));
  MUST(cudaStreamDestroy(captured));
  MUST(cudaFreeHost(word));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
}

}  // namespace

int main() {
  seen_by_every_way();
  copied_by_a_graph_before();
  written_before_a_copy(false);
  written_before_a_copy(true);
  written_by_a_host_function(false);
  written_by_a_host_function(true);
  read_during_the_call(false);
  read_during_the_call(true);
  copies_of_nothing();
  at_offsets();
  sockets();
  refused_copies();
  fills_of_the_host();
  fills_beside_others();
  return pass("memory_promises");
}
