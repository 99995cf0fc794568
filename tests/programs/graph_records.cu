// A program with a profiler of its own inside that looks at its graphs as a whole: CUPTI's records of kind
// GRAPH_TRACE, which stand in the place of their nodes'. It prints PASS. Natively the same.
#include <cuda_runtime.h>
#include <cupti.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "common.hh"

__global__ void add(int* p) { *p += 1; }

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
  return pass("graph_records");
}
