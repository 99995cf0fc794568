// A program with a profiler of its own inside that looks at its graphs: as a whole (CUPTI's records of kind
// GRAPH_TRACE, which stand in the place of their nodes'), and as they are made (callbacks of graphs and
// nodes, whose numbers the nodes' records have). It prints PASS. Natively the same.
#include <cuda_runtime.h>
#include <cupti.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common.hh"

__global__ void add(int* p) { *p += 1; }
__global__ void twice(int* p) { *p *= 2; }

struct made {
  uint32_t function = 0;
  uint64_t begin = 0, end = 0;
};

std::mutex mutex;
std::vector<CUpti_ActivityGraphTrace2> graphs;
std::vector<CUpti_ActivityKernel10> kernels;
std::map<uint32_t, made> calls;  // of the runtime, by correlation

void give(uint8_t** buffer, size_t* bytes, size_t* most) {
  *bytes = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
  *most = 0;
}

void take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
      graphs.push_back(*reinterpret_cast<CUpti_ActivityGraphTrace2*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
      const auto* c = reinterpret_cast<CUpti_ActivityAPI*>(record);
      calls[c->correlationId] = {c->cbid, c->start, c->end};
    }
  }
  std::free(buffer);
}

void flush() { MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)); }

/// What a callback of the domain RESOURCE has told of.
struct told {
  uint32_t what;
  CUpti_GraphData about;
  uint64_t node = 0, original = 0;  // numbers
};
std::vector<told> events;

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  EXPECT(domain == CUPTI_CB_DOMAIN_RESOURCE);
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  EXPECT(resource->resourceDescriptor);
  told one{id, *static_cast<const CUpti_GraphData*>(resource->resourceDescriptor)};
  if (one.about.node) MUST(cuptiGetGraphNodeId(one.about.node, &one.node));
  if (one.about.originalNode) MUST(cuptiGetGraphNodeId(one.about.originalNode, &one.original));
  events.push_back(one);
}

/// Of the events since the last question, those of this kind.
std::vector<told> new_ones(uint32_t what) {
  std::vector<told> found;
  for (const told& one : events) {
    if (one.what == what) found.push_back(one);
  }
  return found;
}

/// The number of the executable graph's node that this one has become.
uint64_t clone_of(const std::vector<told>& clones, cudaGraphNode_t node) {
  uint64_t original = 0, number = 0;
  MUST(cuptiGetGraphNodeId(reinterpret_cast<CUgraphNode>(node), &original));
  EXPECT(original != 0);
  for (const told& one : clones) {
    if (one.original == original) number = one.node;
  }
  EXPECT(number != 0 && number != original);
  return number;
}

const CUpti_ActivityKernel10& kernel_of_node(uint64_t number) {
  for (const CUpti_ActivityKernel10& k : kernels) {
    if (k.graphNodeId == number) return k;
  }
  std::printf("FAIL: no kernel of node %llu\n", static_cast<unsigned long long>(number));
  std::exit(1);
}

/// Nodes that are added one by one, and those of a clone: each is told of when it is made, and the records of
/// its work have the number of what it becomes in the executable graph.
void nodes_are_told_of(int* at, cudaStream_t side) {
  cudaGraph_t graph = nullptr;
  MUST(cudaGraphCreate(&graph, 0));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPH_CREATED).size() == 1);
  EXPECT(events.back().about.graph == reinterpret_cast<CUgraph>(graph));
  events.clear();
  cudaGraphNode_t fill = nullptr, adds = nullptr, doubles = nullptr;
  cudaMemsetParams zero{};
  zero.dst = at, zero.elementSize = 4, zero.width = zero.height = 1;
  MUST(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero));
  void* arguments[] = {&at};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  MUST(cudaGraphAddKernelNode(&adds, graph, &fill, 1, &kernel));
  kernel.func = reinterpret_cast<void*>(twice);
  MUST(cudaGraphAddKernelNode(&doubles, graph, &adds, 1, &kernel));
  const auto created = new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  EXPECT(created.size() == 3);
  // NVIDIA's says of which type a node is only before it is made.
  const auto begun = new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
  EXPECT(begun.size() == 3 && begun[0].about.nodeType == CU_GRAPH_NODE_TYPE_MEMSET);
  EXPECT(begun[1].about.nodeType == CU_GRAPH_NODE_TYPE_KERNEL);
  EXPECT(created[1].about.node == reinterpret_cast<CUgraphNode>(adds));
  EXPECT(created[2].about.node == reinterpret_cast<CUgraphNode>(doubles));
  EXPECT(created[2].about.graph == reinterpret_cast<CUgraph>(graph));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED).size() == 2);

  events.clear();
  cudaGraphExec_t whole = nullptr;
  MUST(cudaGraphInstantiate(&whole, graph, 0));
  const auto clones = new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED).size() == 1);
  kernels.clear();
  MUST(cudaGraphLaunch(whole, side));
  MUST(cudaStreamSynchronize(side));
  flush();
  EXPECT(kernels.size() == 2);
  const std::string first = kernel_of_node(clone_of(clones, adds)).name;
  const std::string second = kernel_of_node(clone_of(clones, doubles)).name;
  EXPECT(first.find("add") != std::string::npos && second.find("twice") != std::string::npos);

  events.clear();
  cudaGraph_t other = nullptr;
  MUST(cudaGraphClone(&other, graph));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPH_CLONED).size() == 1);
  (void)clone_of(new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED), doubles);
  events.clear();
  MUST(cudaGraphDestroyNode(doubles));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING).size() == 1);
  MUST(cudaGraphDestroy(other));
  MUST(cudaGraphExecDestroy(whole));
  MUST(cudaGraphDestroy(graph));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING).size() == 1);
  EXPECT(!new_ones(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING).empty());
}

/// What is captured becomes nodes, told of when the calls are made; the graph may be gone when it runs.
void captured_nodes_are_told_of(int* at, cudaStream_t side) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t whole = nullptr;
  events.clear();
  MUST(cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal));
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED).empty());
  add<<<1, 1, 0, side>>>(at);
  EXPECT(new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED).size() == 1);
  MUST(cudaMemsetAsync(at, 0, sizeof *at, side));
  twice<<<1, 1, 0, side>>>(at);
  MUST(cudaStreamEndCapture(side, &graph));
  const auto created = new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  EXPECT(created.size() == 3);
  EXPECT(created[0].node != 0 && created[2].node != 0 && created[0].node != created[2].node);
  MUST(cudaGraphInstantiate(&whole, graph, 0));
  MUST(cudaGraphDestroy(graph));
  std::map<uint64_t, uint64_t> originals;
  for (const told& one : new_ones(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)) originals[one.node] = one.original;
  kernels.clear();
  MUST(cudaGraphLaunch(whole, side));
  MUST(cudaStreamSynchronize(side));
  flush();
  EXPECT(kernels.size() == 2);
  for (const CUpti_ActivityKernel10& k : kernels) {
    const bool doubles = std::string(k.name).find("twice") != std::string::npos;
    EXPECT(originals[k.graphNodeId] == created[doubles ? 2 : 0].node);
  }
  MUST(cudaGraphExecDestroy(whole));
}

int main() {
  MUST(cuptiActivityRegisterCallbacks(give, take));
  for (const auto kind :
       {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME})
    MUST(cuptiActivityEnable(kind));
  constexpr int nodes = 4, launches = 3;
  int* at = nullptr;
  MUST(cudaMalloc(&at, sizeof *at));
  MUST(cudaMemset(at, 0, sizeof *at));
  cudaStream_t side = nullptr;
  MUST(cudaStreamCreate(&side));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t whole = nullptr;
  MUST(cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < nodes; ++i) add<<<1, 1, 0, side>>>(at);
  MUST(cudaStreamEndCapture(side, &graph));
  MUST(cudaGraphInstantiate(&whole, graph, 0));
  uint64_t before = 0, after = 0;
  MUST(cuptiGetTimestamp(&before));
  for (int i = 0; i < launches; ++i) MUST(cudaGraphLaunch(whole, side));
  add<<<1, 1, 0, side>>>(at);
  MUST(cudaStreamSynchronize(side));
  MUST(cuptiGetTimestamp(&after));
  flush();

  int value = 0;
  MUST(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == nodes * launches + 1);
  uint32_t stream = 0;
  MUST(cuptiGetStreamIdEx(nullptr, side, 0, &stream));
  const uint64_t slack = 20000;  // of two clocks, nanoseconds
  EXPECT(graphs.size() == launches);
  for (const CUpti_ActivityGraphTrace2& g : graphs) {
    EXPECT(calls.count(g.correlationId) == 1);
    EXPECT(calls[g.correlationId].function == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
    EXPECT(g.start < g.end && g.start + slack >= calls[g.correlationId].begin);
    EXPECT(g.start + slack >= before && g.end <= after + slack);
    EXPECT(g.graphId == graphs[0].graphId && g.streamId == stream && g.deviceId == 0 && g.endDeviceId == 0);
  }
  // One after the other, and the nodes have no records of their own.
  for (int i = 0; i + 1 < launches; ++i) EXPECT(graphs[i].end <= graphs[i + 1].start + slack);
  EXPECT(kernels.size() == 1 && kernels[0].graphNodeId == 0);
  EXPECT(graphs[launches - 1].end <= kernels[0].start + slack);

  // A launch with nothing behind it is told of, too; and its nodes, once graphs are not wanted as a whole.
  MUST(cudaGraphLaunch(whole, side));
  MUST(cudaStreamSynchronize(side));
  flush();
  EXPECT(graphs.size() == launches + 1);
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  MUST(cudaGraphLaunch(whole, side));
  MUST(cudaStreamSynchronize(side));
  flush();
  EXPECT(graphs.size() == launches + 1 && kernels.size() == 1 + nodes);

  CUpti_SubscriberHandle subscriber = nullptr;
  MUST(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(called), nullptr));
  for (uint32_t id = CUPTI_CBID_RESOURCE_GRAPH_CREATED; id <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED; ++id)
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
  nodes_are_told_of(at, side);
  captured_nodes_are_told_of(at, side);
  MUST(cuptiUnsubscribe(subscriber));
  return pass("graph_records");
}
