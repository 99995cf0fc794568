// Makes one call whose reply a server damages, and three more. `wrong_replies FUNCTION` prepares, says
// "ready", reads a line, then prints the code of each call.
#include <cuda.h>

#include <functional>
#include <map>
#include <string>

#include "common.hh"

namespace {

constexpr char code[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry nothing() { ret; }\n";

#define PREPARED(call)                                                                 \
  do {                                                                                 \
    if (const CUresult result = (call); result != CUDA_SUCCESS) {                      \
      std::printf("FAIL %s:%d: %s gave %d\n", __FILE__, __LINE__, #call, (int)result); \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (0)

struct world {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr, captured = nullptr;
  CUevent first = nullptr, last = nullptr;

  world() {
    PREPARED(cuInit(0));
    PREPARED(cuDeviceGet(&device, 0));
    PREPARED(cuDevicePrimaryCtxRetain(&context, device));
    PREPARED(cuCtxSetCurrent(context));
    PREPARED(cuModuleLoadData(&module, code));
    PREPARED(cuModuleGetFunction(&function, module, "nothing"));
    PREPARED(cuGraphCreate(&graph, 0));
    PREPARED(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
    PREPARED(cuDeviceGetMemPool(&pool, device));
    PREPARED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PREPARED(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    PREPARED(cuEventCreate(&first, CU_EVENT_DEFAULT));
    PREPARED(cuEventCreate(&last, CU_EVENT_DEFAULT));
    PREPARED(cuEventRecord(first, stream));
    PREPARED(cuEventRecord(last, stream));
    PREPARED(cuCtxSynchronize());
    PREPARED(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  }
};

using call = std::function<CUresult(world&)>;

const std::map<std::string, call> calls = {
    {"cuMemGetInfo_v2",
     [](world&) {
       std::size_t free = 0, total = 0;
       return cuMemGetInfo(&free, &total);
     }},
    {"cuModuleLoadData",
     [](world&) {
       CUmodule module = nullptr;
       return cuModuleLoadData(&module, ".version 7.0\n.target sm_52\n.address_size 64\n");
     }},
    {"cuFuncGetAttribute",
     [](world& w) {
       int value = 0;
       return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, w.function);
     }},
    {"cuGraphAddNode_v2",
     [](world& w) {
       CUgraphNode node = nullptr;
       return cuGraphAddEmptyNode(&node, w.graph, nullptr, 0);
     }},
    {"cuGraphGetNodes",
     [](world& w) {
       CUgraphNode nodes[4];
       std::size_t count = 4;
       return cuGraphGetNodes(w.graph, nodes, &count);
     }},
    {"cuGraphNodeGetType",
     [](world& w) {
       CUgraphNodeType type{};
       return cuGraphNodeGetType(w.node, &type);
     }},
    {"cuGraphInstantiateWithParams",
     [](world& w) {
       CUgraphExec exec = nullptr;
       return cuGraphInstantiate(&exec, w.graph, 0);
     }},
    {"cuMemPoolGetAttribute",
     [](world& w) {
       cuuint64_t value = 0;
       return cuMemPoolGetAttribute(w.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
     }},
    {"cuMemAllocAsync",
     [](world& w) {
       CUdeviceptr address = 0;
       return cuMemAllocAsync(&address, 4096, w.stream);
     }},
    {"cuStreamIsCapturing",
     [](world& w) {
       CUstreamCaptureStatus status{};
       return cuStreamIsCapturing(w.captured, &status);
     }},
    {"cuStreamGetCaptureInfo_v2",
     [](world& w) {
       CUstreamCaptureStatus status{};
       cuuint64_t id = 0;
       return cuStreamGetCaptureInfo(w.captured, &status, &id, nullptr, nullptr, nullptr, nullptr);
     }},
    {"cuEventElapsedTime_v2",  // a generated end
     [](world& w) {
       float time = 0;
       return cuEventElapsedTime(&time, w.first, w.last);
     }},
};

}  // namespace

int main(int count, char** arguments) {
  const auto found = calls.find(count == 2 ? arguments[1] : "");
  if (found == calls.end()) return std::printf("FAIL: no such call\n"), 1;
  world w;
  std::printf("ready\n");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  const CUresult codes[] = {found->second(w), cuMemAlloc(&address, 64), cuStreamCreate(&stream, 0),
                            cuCtxSynchronize()};
  for (const CUresult code : codes) std::printf("%d\n", (int)code);
  return 0;
}
