// An executable graph whose kernels get other values before each launch: the driver is asked for each node
// once, and again where more than values changes. What it refuses is refused at once, and nothing changes by
// it.
#include "common.hh"

__global__ void add(int* x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}

namespace {

constexpr int n = 1024, nodes = 5, rounds = 40;

struct arguments {
  int *x, count = n, value;
  void* list[3] = {&x, &count, &value};
  arguments(int* x_, int value_) : x(x_), value(value_) {}
  cudaKernelNodeParams parameters(unsigned threads = 256) {
    cudaKernelNodeParams p{};
    p.func = reinterpret_cast<void*>(add);
    p.gridDim = dim3(n / threads);
    p.blockDim = dim3(threads);
    p.kernelParams = list;
    return p;
  }
};

int sum_of(const int* x) {
  std::vector<int> host(n);
  MUST(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  int sum = 0;
  for (const int v : host) sum += v;
  return sum;
}

}  // namespace

int main() {
  int* blocks[2] = {};
  for (int*& block : blocks) {
    MUST(cudaMalloc(&block, n * sizeof(int)));
    MUST(cudaMemset(block, 0, n * sizeof(int)));
  }
  cudaGraph_t graph = nullptr;
  MUST(cudaGraphCreate(&graph, 0));
  std::vector<cudaGraphNode_t> all(nodes);
  for (int i = 0; i < nodes; ++i) {
    arguments a(blocks[0], 0);
    const cudaKernelNodeParams p = a.parameters();
    MUST(cudaGraphAddKernelNode(&all[i], graph, i ? &all[i - 1] : nullptr, i ? 1 : 0, &p));
  }
  cudaGraphExec_t exec = nullptr;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  cudaStream_t s = nullptr;
  MUST(cudaStreamCreate(&s));

  // Blocks and numbers change in turns, as a framework's donated buffers do.
  int expected[2] = {};
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < nodes; ++i) {
      arguments a(blocks[round % 2], round + i);
      const cudaKernelNodeParams p = a.parameters();
      MUST(cudaGraphExecKernelNodeSetParams(exec, all[i], &p));
      expected[round % 2] += n * (round + i);
    }
    MUST(cudaGraphLaunch(exec, s));
  }
  MUST(cudaStreamSynchronize(s));
  for (int b = 0; b < 2; ++b) EXPECT(sum_of(blocks[b]) == expected[b]);

  // Another shape, and back; then one that no device takes: the last that was taken stays.
  for (const unsigned threads : {128u, 256u}) {
    arguments a(blocks[0], 1000);
    const cudaKernelNodeParams p = a.parameters(threads);
    MUST(cudaGraphExecKernelNodeSetParams(exec, all[0], &p));
  }
  arguments wrong(blocks[0], 9999);
  cudaKernelNodeParams p = wrong.parameters();
  p.blockDim = dim3(4096);
  EXPECT(cudaGraphExecKernelNodeSetParams(exec, all[0], &p) != cudaSuccess);
  (void)cudaGetLastError();
  for (int i = 1; i < nodes; ++i) {
    arguments a(blocks[0], 0);
    const cudaKernelNodeParams none = a.parameters();
    MUST(cudaGraphExecKernelNodeSetParams(exec, all[i], &none));
  }
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  EXPECT(sum_of(blocks[0]) == (expected[0] += n * 1000));

  // The graph's own nodes give their values to the executable one.
  arguments from_graph(blocks[1], 7);
  p = from_graph.parameters();
  for (const cudaGraphNode_t node : all) MUST(cudaGraphKernelNodeSetParams(node, &p));
  cudaGraphExecUpdateResultInfo result{};
  MUST(cudaGraphExecUpdate(exec, graph, &result));
  arguments last(blocks[1], 1);
  p = last.parameters();
  MUST(cudaGraphExecKernelNodeSetParams(exec, all[0], &p));
  MUST(cudaGraphLaunch(exec, s));
  MUST(cudaStreamSynchronize(s));
  EXPECT(sum_of(blocks[1]) == expected[1] + n * (1 + 7 * (nodes - 1)));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  return pass("graph_values");
}
