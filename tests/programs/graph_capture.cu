// Streams under capture: forks and joins, copies that read and write host memory at each launch, host
// functions among them, what is forbidden meanwhile, and updates of what was instantiated.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "common.hh"

__global__ void scale(int* x, int n, int a, int b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * a + b;
}
__global__ void sum(int* out, const int* a, const int* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

namespace {

constexpr int n = 1 << 12;
constexpr std::size_t bytes = n * sizeof(int);
constexpr int grid = n / 256, block = 256;

struct buffers {
  int *a = nullptr, *b = nullptr, *c = nullptr;
  buffers() {
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaMalloc(&c, bytes));
  }
  ~buffers() {
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
  }
};

struct stream {
  cudaStream_t s = nullptr;
  stream() { MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); }
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};

cudaGraph_t end(cudaStream_t s) {
  cudaGraph_t graph = nullptr;
  MUST(cudaStreamEndCapture(s, &graph));
  EXPECT(graph != nullptr);
  return graph;
}

cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

std::size_t count_nodes(cudaGraph_t graph) {
  std::size_t nodes = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
  return nodes;
}

/// Two branches from one event, joined by another; nothing runs before the launch.
void fork_and_join() {
  buffers m;
  stream first, second;
  cudaEvent_t forked, joined;
  MUST(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  MUST(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  MUST(cudaMemset(m.a, 0, bytes));
  MUST(cudaMemset(m.c, 0, bytes));
  MUST(cudaDeviceSynchronize());

  MUST(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  MUST(cudaMemsetAsync(m.b, 0, bytes, first));
  MUST(cudaEventRecord(forked, first));
  MUST(cudaStreamWaitEvent(second, forked, 0));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  MUST(cudaStreamIsCapturing(second, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  scale<<<grid, block, 0, first>>>(m.a, n, 1, 3);
  scale<<<grid, block, 0, second>>>(m.b, n, 1, 4);
  scale<<<grid, block, 0, second>>>(m.b, n, 2, 0);
  MUST(cudaEventRecord(joined, second));
  MUST(cudaStreamWaitEvent(first, joined, 0));
  sum<<<grid, block, 0, first>>>(m.c, m.a, m.b, n);
  MUST(cudaGetLastError());
  unsigned long long id = 0;
  cudaGraph_t under_way = nullptr;
  const cudaGraphNode_t* last = nullptr;
  std::size_t last_count = 0;
  MUST(cudaStreamGetCaptureInfo(first, &status, &id, &under_way, &last, nullptr, &last_count));
  EXPECT(status == cudaStreamCaptureStatusActive && id != 0 && under_way != nullptr && last_count == 1);
  cudaGraph_t graph = end(first);
  MUST(cudaStreamIsCapturing(second, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);

  EXPECT(count_nodes(graph) == 5);
  std::size_t edges = 0;
  MUST(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(edges == 5);
  std::size_t roots = 0;
  MUST(cudaGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT(roots == 1);
  std::vector<int> host(n, -1);
  MUST(cudaMemcpy(host.data(), m.c, bytes, cudaMemcpyDeviceToHost));
  for (int v : host) EXPECT(v == 0);

  cudaGraphExec_t exec = instantiated(graph);
  MUST(cudaGraphDestroy(graph));
  for (int round = 1; round <= 4; ++round) {
    MUST(cudaGraphLaunch(exec, round % 2 ? first : second));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host.data(), m.c, bytes, cudaMemcpyDeviceToHost));
    for (int v : host) EXPECT(v == 3 * round + 8);
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaEventDestroy(forked));
  MUST(cudaEventDestroy(joined));
}

/// A graph's copies use what is in host memory when the graph runs.
void copies(bool pinned) {
  buffers m;
  stream s;
  std::vector<int> plain_in(n), plain_out(n);
  int *in = plain_in.data(), *out = plain_out.data();
  if (pinned) {
    MUST(cudaMallocHost(&in, bytes));
    MUST(cudaMallocHost(&out, bytes));
  }
  for (int i = 0; i < n; ++i) in[i] = -1, out[i] = -2;
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  MUST(cudaMemcpyAsync(m.a, in, bytes, cudaMemcpyHostToDevice, s));
  scale<<<grid, block, 0, s>>>(m.a, n, 3, 1);
  MUST(cudaMemcpyAsync(out, m.a, bytes, cudaMemcpyDeviceToHost, s));
  cudaGraph_t graph = end(s);
  EXPECT(count_nodes(graph) == 3);
  cudaGraphExec_t exec = instantiated(graph);
  for (int i = 0; i < n; ++i) EXPECT(out[i] == -2);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n; ++i) in[i] = i + 1000 * round;
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    for (int i = 0; i < n; ++i) EXPECT(out[i] == 3 * (i + 1000 * round) + 1);
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  if (pinned) {
    MUST(cudaFreeHost(in));
    MUST(cudaFreeHost(out));
  }
}

struct visit {
  int *in, *out;
  std::vector<int> seen;
};

/// A host function between copies reads what the copy before it wrote and writes what the copy behind it
/// reads.
void host_function_between_copies() {
  buffers m;
  stream s;
  visit v{nullptr, nullptr, {}};
  MUST(cudaMallocHost(&v.in, bytes));
  MUST(cudaMallocHost(&v.out, bytes));
  MUST(cudaMemset(m.a, 0, bytes));
  MUST(cudaDeviceSynchronize());
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  scale<<<grid, block, 0, s>>>(m.a, n, 1, 5);
  MUST(cudaMemcpyAsync(v.out, m.a, bytes, cudaMemcpyDeviceToHost, s));
  const auto body = [](void* data) {
    visit* w = static_cast<visit*>(data);
    w->seen.push_back(w->out[n - 1]);
    for (int i = 0; i < n; ++i) w->in[i] = w->out[i] * 10;
  };
  MUST(cudaLaunchHostFunc(s, body, &v));
  MUST(cudaMemcpyAsync(m.b, v.in, bytes, cudaMemcpyHostToDevice, s));
  cudaGraph_t graph = end(s);
  EXPECT(count_nodes(graph) == 4 && v.seen.empty());
  cudaGraphExec_t exec = instantiated(graph);
  std::vector<int> b(n);
  for (int round = 1; round <= 3; ++round) {
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    MUST(cudaMemcpy(b.data(), m.b, bytes, cudaMemcpyDeviceToHost));
    for (int x : b) EXPECT(x == 50 * round);
  }
  EXPECT((v.seen == std::vector<int>{5, 10, 15}));
  for (int launch = 0; launch < 20; ++launch) MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  EXPECT(v.seen.size() == 23 && v.seen.back() == 115);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFreeHost(v.in));
  MUST(cudaFreeHost(v.out));
}

/// A launch returns although earlier ones have not begun: their copies wait in the stream.
void launches_wait_for_nobody() {
  buffers m;
  stream s;
  int *in, *out;
  MUST(cudaMallocHost(&in, bytes));
  MUST(cudaMallocHost(&out, bytes));
  for (int i = 0; i < n; ++i) in[i] = i;
  MUST(cudaMemset(m.c, 0, bytes));
  MUST(cudaDeviceSynchronize());
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  MUST(cudaMemcpyAsync(m.a, in, bytes, cudaMemcpyHostToDevice, s));
  sum<<<grid, block, 0, s>>>(m.c, m.c, m.a, n);
  MUST(cudaMemcpyAsync(out, m.c, bytes, cudaMemcpyDeviceToHost, s));
  cudaGraph_t graph = end(s);
  cudaGraphExec_t exec = instantiated(graph);
  std::atomic<bool> open{false};
  MUST(cudaLaunchHostFunc(
      s,
      [](void* data) {
        const auto* gate = static_cast<std::atomic<bool>*>(data);
        while (!*gate) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      &open));
  for (int launch = 0; launch < 5; ++launch) MUST(cudaGraphLaunch(exec, s));
  EXPECT(cudaStreamQuery(s) == cudaErrorNotReady);
  open = true;
  MUST(cudaStreamSynchronize(s));
  for (int i = 0; i < n; ++i) EXPECT(out[i] == 5 * i);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFreeHost(in));
  MUST(cudaFreeHost(out));
}

void updates() {
  buffers m;
  stream s;
  const auto capture = [&](int a, int b, bool more) {
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    scale<<<grid, block, 0, s>>>(m.a, n, a, b);
    if (more) scale<<<grid, block, 0, s>>>(m.a, n, a, b);
    return end(s);
  };
  const auto value = [&] {
    int x = 0;
    MUST(cudaMemcpy(&x, m.a, sizeof x, cudaMemcpyDeviceToHost));
    return x;
  };
  MUST(cudaMemset(m.a, 0, bytes));
  MUST(cudaDeviceSynchronize());
  cudaGraph_t first = capture(1, 7, false), second = capture(2, 1, false), other = capture(1, 1, true);
  cudaGraphExec_t exec = instantiated(first);
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  EXPECT(value() == 7);
  cudaGraphExecUpdateResultInfo info;
  MUST(cudaGraphExecUpdate(exec, second, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  EXPECT(value() == 15);
  EXPECT(cudaGraphExecUpdate(exec, other, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
  MUST(cudaGraphLaunch(exec, s));  // as before
  MUST(cudaStreamSynchronize(s));
  EXPECT(value() == 31);
  for (cudaGraph_t g : {first, second, other}) MUST(cudaGraphDestroy(g));
  MUST(cudaGraphExecDestroy(exec));
}

/// The call is refused and the capture is lost; EndCapture returns the error and no graph.
template <class Call>
void loses(cudaError_t expected, Call call) {
  stream s;
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  EXPECT(call(s.s) == expected);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  MUST(cudaStreamIsCapturing(s, &status));
  EXPECT(status == cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(8);
  EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  cudaGetLastError();
  MUST(cudaStreamSynchronize(s));
}

void what_is_forbidden() {
  buffers m;
  loses(cudaErrorStreamCaptureUnsupported, [](cudaStream_t s) { return cudaStreamSynchronize(s); });
  loses(cudaErrorStreamCaptureUnsupported, [](cudaStream_t s) { return cudaStreamQuery(s); });
  loses(cudaErrorStreamCaptureUnsupported, [](cudaStream_t) {
    void* p = nullptr;
    return cudaMalloc(&p, 1 << 20);
  });
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  {  // other streams must rejoin before the capture ends
    stream s, other;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    MUST(cudaEventRecord(event, s));
    MUST(cudaStreamWaitEvent(other, event, 0));
    scale<<<grid, block, 0, other>>>(m.a, n, 1, 1);
    cudaGraph_t graph = nullptr;
    EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined);
    cudaGetLastError();
    MUST(cudaStreamSynchronize(other));
  }
  {  // not begun, begun twice
    stream s;
    cudaGraph_t graph = nullptr;
    EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorIllegalState);
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    EXPECT(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaErrorIllegalState);
    cudaGetLastError();
    graph = end(s);
    EXPECT(count_nodes(graph) == 0);
    MUST(cudaGraphDestroy(graph));
  }
  {  // relaxed: the thread may do what it likes
    stream s;
    void* p = nullptr;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    MUST(cudaMalloc(&p, 1 << 20));
    scale<<<grid, block, 0, s>>>(m.a, n, 1, 1);
    cudaGraph_t graph = end(s);
    EXPECT(count_nodes(graph) == 1);
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(p));
  }
  MUST(cudaEventDestroy(event));
}

}  // namespace

int main() {
  fork_and_join();
  copies(true);
  copies(false);
  host_function_between_copies();
  launches_wait_for_nobody();
  updates();
  what_is_forbidden();
  std::printf("PASS graph_capture\n");
  return 0;
}
