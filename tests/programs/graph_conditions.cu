// Conditional nodes: kernels decide whether a body runs, how often, and which of several.
#include "common.hh"

__global__ void count_down(int* left, int* rounds, cudaGraphConditionalHandle handle) {
  ++*rounds;
  cudaGraphSetConditional(handle, --*left > 0);
}
__global__ void choose(const int* which, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *which);
}
__global__ void add(int* x, int n) { *x += n; }

namespace {

template <class... A>
cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t* before, std::size_t count,
                           void (*kernel)(A...), A... arguments) {
  void* list[] = {&arguments...};
  cudaKernelNodeParams p{};
  p.func = reinterpret_cast<void*>(kernel);
  p.gridDim = p.blockDim = dim3(1);
  p.kernelParams = list;
  cudaGraphNode_t node = nullptr;
  MUST(cudaGraphAddKernelNode(&node, graph, before, count, &p));
  return node;
}

std::vector<cudaGraph_t> add_conditional(cudaGraph_t graph, const cudaGraphNode_t* before, std::size_t count,
                                         cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                                         unsigned bodies) {
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = bodies;
  cudaGraphNode_t node = nullptr;
  MUST(cudaGraphAddNode(&node, graph, before, nullptr, count, &p));
  return {p.conditional.phGraph_out, p.conditional.phGraph_out + bodies};
}

struct numbers_on_device {
  int* x = nullptr;
  numbers_on_device() { MUST(cudaMalloc(&x, 4 * sizeof(int))); }
  ~numbers_on_device() { cudaFree(x); }
  void set(int a, int b) {
    const int v[4] = {a, b, 0, 0};
    MUST(cudaMemcpy(x, v, sizeof v, cudaMemcpyHostToDevice));
  }
  int get(int i) const {
    int v = 0;
    MUST(cudaMemcpy(&v, x + i, sizeof v, cudaMemcpyDeviceToHost));
    return v;
  }
};

void launch(cudaGraphExec_t exec) {
  MUST(cudaGraphLaunch(exec, nullptr));
  MUST(cudaDeviceSynchronize());
}

void loop() {
  numbers_on_device m;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle handle;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  const auto bodies = add_conditional(graph, nullptr, 0, handle, cudaGraphCondTypeWhile, 1);
  add_kernel(bodies[0], nullptr, 0, count_down, m.x, m.x + 1, handle);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (const int rounds : {5, 1, 40}) {
    m.set(rounds, 0);
    launch(exec);
    EXPECT(m.get(1) == rounds);
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
}

void branch() {
  numbers_on_device m;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle handle;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  const cudaGraphNode_t chooser = add_kernel(graph, nullptr, 0, choose, static_cast<const int*>(m.x), handle);
  const auto bodies = add_conditional(graph, &chooser, 1, handle, cudaGraphCondTypeIf, 1);
  add_kernel(bodies[0], nullptr, 0, add, m.x + 1, 7);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  for (const int which : {1, 0, 3}) {
    m.set(which, 100);
    launch(exec);
    EXPECT(m.get(1) == (which ? 107 : 100));
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
}

/// A body is filled by capture. A capture into an existing graph need not return it at the end.
void captured_body() {
  numbers_on_device n;
  n.set(1, 0);
  cudaGraph_t graph = nullptr;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle{};
  MUST(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  const std::vector<cudaGraph_t> body = add_conditional(graph, nullptr, 0, handle, cudaGraphCondTypeIf, 1);
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamBeginCaptureToGraph(stream, body[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(n.x, 41);
  MUST(cudaStreamEndCapture(stream, nullptr));
  cudaGraphExec_t exec = nullptr;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  launch(exec);
  EXPECT(n.get(0) == 42);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  loop();
  branch();
  captured_body();
  std::printf("PASS graph_conditions\n");
  return 0;
}
