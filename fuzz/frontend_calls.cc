#include "frontend_calls.hh"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "frontend/cuda/entry.hh"
#include "hostile_server.hh"

namespace outboard::fuzz {
namespace {

using namespace frontend::cuda;
using api::opcode;

#define HAND(name, ...) \
  enter_hand_written<opcode::name>([&] { return ends::name(__VA_ARGS__); } __VA_OPT__(, ) __VA_ARGS__)
#define MADE(name, ...) enter_generated<opcode::name>(__VA_ARGS__)

constexpr char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n.global .align 4 .u32 table[4];\n"
    ".visible .entry k(.param .u64 place, .param .u32 count) { ret; }\n";
constexpr char unreadable[] = ".version 7.0\n.target sm_52\n.visible .entry k(place, count)\n";

/// Bytes with secrets behind them. All memory that the program passes to calls is cleared, since the secrets
/// of earlier inputs may lie in it.
class buffer {
 public:
  explicit buffer(std::size_t size) : size_(size), bytes_(new char[size + most]) {
    std::memset(bytes_.get(), 0, size);
    for (std::size_t at = size; at < size + most; ++at) bytes_[at] = secret[(at - size) % secret.size()];
  }
  template <class T = void>
  T* as() {
    return reinterpret_cast<T*>(bytes_.get());
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t most = 4096;
  std::size_t size_;
  std::unique_ptr<char[]> bytes_;
};

void copy(CUdeviceptr there) {
  buffer here(512);
  (void)HAND(cuMemcpyHtoD_v2, there, here.as<const void>(), here.size());
  const std::unique_ptr<char[]> back(new char[512]());
  void* const to = back.get();
  (void)HAND(cuMemcpyDtoH_v2, to, there, std::size_t{512});
  CUDA_MEMCPY2D box{};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE, box.srcDevice = there, box.srcPitch = 64;
  box.dstMemoryType = CU_MEMORYTYPE_HOST, box.dstHost = to, box.dstPitch = 128;
  box.WidthInBytes = 64, box.Height = 4;
  const CUDA_MEMCPY2D* const about = &box;
  (void)HAND(cuMemcpy2D_v2, about);
}

/// Copies that nobody waits for, into memory that the program then gives back.
void copy_later(CUdeviceptr there, CUstream stream) {
  void* pinned = nullptr;
  if (HAND(cuMemHostAlloc, &pinned, std::size_t{4096}, 0u) == CUDA_SUCCESS) {
    (void)HAND(cuMemcpyDtoHAsync_v2, pinned, there, std::size_t{512}, stream);
    CUdeviceptr seen = 0;
    (void)HAND(cuMemHostGetDevicePointer_v2, &seen, pinned, 0u);
    (void)HAND(cuMemFreeHost, pinned);
  }
  const std::unique_ptr<char[]> own(new char[8192]());
  void* const registered = own.get();
  if (HAND(cuMemHostRegister_v2, registered, std::size_t{8192}, 0u) != CUDA_SUCCESS) return;
  (void)HAND(cuMemcpyDtoHAsync_v2, registered, there, std::size_t{512}, stream);
  CUdeviceptr seen = 0;
  (void)HAND(cuMemHostGetDevicePointer_v2, &seen, registered, 0u);
  (void)HAND(cuMemHostUnregister, registered);
}

/// Arguments as the server may say that they are where only a driver can read the image: as many as a driver
/// allows, each as large.
void** most_arguments() {
  constexpr std::size_t most = 32764;
  static char bytes[most];
  static std::vector<void*> all(most, bytes);
  return all.data();
}

void launch(CUfunction function, bool readable) {
  buffer place(8), count(4);
  void* arguments[] = {place.as(), count.as()};
  void** const given = readable ? arguments : most_arguments();
  CUstream stream = nullptr;
  (void)HAND(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, given, nullptr);
  (void)HAND(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, given, nullptr);
  std::size_t offset = 0, size = 0;
  (void)HAND(cuFuncGetParamInfo, function, std::size_t{1}, &offset, &size);
  int value = 0;
  (void)HAND(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  (void)HAND(cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, function, 32, std::size_t{0});
}

void use_module(const char* text, bool readable) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const void* const image = text;
  if (HAND(cuModuleLoadData, &module, image) != CUDA_SUCCESS) return;
  if (HAND(cuModuleGetFunction, &function, module, "k") == CUDA_SUCCESS) launch(function, readable);
  CUdeviceptr variable = 0;
  std::size_t size = 0;
  (void)HAND(cuModuleGetGlobal_v2, &variable, &size, module, "table");
  unsigned count = 0;
  (void)HAND(cuModuleGetFunctionCount, &count, module);
  const std::unique_ptr<CUfunction[]> list(new CUfunction[2]);
  CUfunction* const functions = list.get();
  (void)HAND(cuModuleEnumerateFunctions, functions, 2u, module);
  (void)HAND(cuModuleUnload, module);
}

void use_library() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const void* const image = code;
  if (HAND(cuLibraryLoadData, &library, image, nullptr, nullptr, 0u, nullptr, nullptr, 0u) != CUDA_SUCCESS)
    return;
  if (HAND(cuLibraryGetKernel, &kernel, library, "k") == CUDA_SUCCESS)
    launch(reinterpret_cast<CUfunction>(kernel), true);
  CUdeviceptr variable = 0;
  std::size_t size = 0;
  (void)HAND(cuLibraryGetGlobal, &variable, &size, library, "table");
  (void)HAND(cuLibraryUnload, library);
}

void link_and_load() {
  CUlinkState link = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  char log[64];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  if (HAND(cuLinkCreate_v2, 2u, options, values, &link) != CUDA_SUCCESS) return;
  void* const text = const_cast<char*>(code);
  (void)HAND(cuLinkAddData_v2, link, CU_JIT_INPUT_PTX, text, sizeof code, "k", 0u, nullptr, nullptr);
  CUmodule module = nullptr;
  if (HAND(cuLinkComplete, link, &image, &size) == CUDA_SUCCESS) {
    const void* const linked = image;
    (void)HAND(cuModuleLoadData, &module, linked);
  }
  (void)HAND(cuLinkDestroy, link);
}

void look_at(CUgraph graph, CUgraphNode node) {
  std::size_t count = 4;
  const std::unique_ptr<CUgraphNode[]> first(new CUgraphNode[4]), second(new CUgraphNode[4]);
  CUgraphNode *const nodes = first.get(), *const others = second.get();
  (void)HAND(cuGraphGetNodes, graph, nodes, &count);
  count = 4;
  (void)HAND(cuGraphGetEdges, graph, nodes, others, &count);
  CUgraphNodeType type{};
  (void)HAND(cuGraphNodeGetType, node, &type);
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  (void)HAND(cuGraphKernelNodeGetParams_v2, node, &kernel);
  CUDA_MEMCPY3D copied{};
  (void)HAND(cuGraphMemcpyNodeGetParams, node, &copied);
  CUDA_HOST_NODE_PARAMS_v1 host{};
  (void)HAND(cuGraphHostNodeGetParams, node, &host);
}

void use_graph(CUdeviceptr there, CUstream stream) {
  static int runs = 0;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  if (HAND(cuGraphCreate, &graph, 0u) != CUDA_SUCCESS) return;
  // Only the server knows when the last graph with such a copy is gone, so its memory stays.
  static buffer from(64);
  static const std::unique_ptr<char[]> to(new char[64]());
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = CU_MEMORYTYPE_HOST, p.srcHost = from.as();
  p.dstMemoryType = CU_MEMORYTYPE_DEVICE, p.dstDevice = there;
  p.WidthInBytes = 64, p.Height = p.Depth = 1;
  const CUgraphNode* const none = nullptr;
  const CUDA_MEMCPY3D* const about = &p;
  CUcontext context = nullptr;
  (void)HAND(cuGraphAddMemcpyNode, &node, graph, none, std::size_t{0}, about, context);
  look_at(graph, node);
  p.srcMemoryType = CU_MEMORYTYPE_DEVICE, p.srcDevice = there;
  p.dstMemoryType = CU_MEMORYTYPE_HOST, p.dstHost = to.get();
  (void)HAND(cuGraphAddMemcpyNode, &node, graph, none, std::size_t{0}, about, context);
  CUDA_HOST_NODE_PARAMS_v1 host{[](void* data) { ++*static_cast<int*>(data); }, &runs};
  const CUDA_HOST_NODE_PARAMS_v1* const function = &host;
  (void)HAND(cuGraphAddHostNode, &node, graph, none, std::size_t{0}, function);
  look_at(graph, node);
  CUgraphExec exec = nullptr;
  if (HAND(cuGraphInstantiateWithFlags, &exec, graph, 0ull) == CUDA_SUCCESS) {
    (void)HAND(cuGraphLaunch, exec, stream);
    (void)HAND(cuCtxSynchronize);
    (void)HAND(cuGraphExecDestroy, exec);
  }
  (void)HAND(cuGraphDestroy, graph);
  (void)HAND(cuCtxSynchronize);
}

void ask(CUstream stream) {
  std::size_t free = 0, total = 0;
  (void)HAND(cuMemGetInfo_v2, &free, &total);
  CUevent first = nullptr, last = nullptr;
  (void)MADE(cuEventCreate, &first, 0u);
  (void)MADE(cuEventCreate, &last, 0u);
  (void)MADE(cuEventRecord, first, stream);
  (void)MADE(cuEventRecord, last, stream);
  float time = 0;
  (void)MADE(cuEventElapsedTime_v2, &time, first, last);
  CUmemoryPool pool = nullptr;
  (void)HAND(cuDeviceGetMemPool, &pool, 0);
  const std::unique_ptr<cuuint64_t> value(new cuuint64_t(0));
  void* const out = value.get();
  (void)HAND(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, out);
  CUdeviceptr address = 0;
  if (HAND(cuMemAllocAsync, &address, std::size_t{4096}, stream) == CUDA_SUCCESS)
    (void)HAND(cuMemFreeAsync, address, stream);
  CUstreamAttrValue attribute{};
  (void)HAND(cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute);
  CUdevResource resource{};
  (void)HAND(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
}

void capture(CUstream stream, CUdeviceptr there) {
  if (HAND(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return;
  static const std::unique_ptr<char[]> here(new char[64]());  // as that of other copies in graphs
  void* const to = here.get();
  (void)HAND(cuMemcpyDtoHAsync_v2, to, there, std::size_t{64}, stream);
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  std::size_t count = 0;
  if (HAND(cuStreamGetCaptureInfo_v2, stream, &status, &id, &graph, &dependencies, &count) == CUDA_SUCCESS) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += reinterpret_cast<std::size_t>(dependencies[i]);
    if (sum == 1) std::abort();  // reads them all
  }
  (void)HAND(cuStreamEndCapture, stream, &graph);
  if (graph) (void)HAND(cuGraphDestroy, graph);
}

void use_managed() {
  CUdeviceptr managed = 0;
  if (HAND(cuMemAllocManaged, &managed, std::size_t{4096}, unsigned{CU_MEM_ATTACH_GLOBAL}) != CUDA_SUCCESS)
    return;
  std::memset(reinterpret_cast<void*>(managed), 1, 4096);
  (void)HAND(cuCtxSynchronize);
  const std::unique_ptr<int[]> list(new int[2]);
  void* const out = list.get();
  (void)HAND(cuMemRangeGetAttribute, out, std::size_t{8}, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed,
             std::size_t{4096});
  (void)HAND(cuMemFree_v2, managed);
}

void run_host_function(CUstream stream) {
  static int runs = 0;
  void* const data = &runs;
  const CUhostFn function = [](void* counted) { ++*static_cast<int*>(counted); };
  (void)HAND(cuLaunchHostFunc, stream, function, data);
  (void)MADE(cuStreamSynchronize, stream);
  // A destructor that runs twice would free twice. It may run late, so its object stays.
  static std::deque<std::atomic<int>> all;
  CUuserObject object = nullptr;
  void* const owned = &all.emplace_back(0);
  const CUhostFn destroy = [](void* one) {
    if (static_cast<std::atomic<int>*>(one)->fetch_add(1) != 0) std::abort();
  };
  if (HAND(cuUserObjectCreate, &object, owned, destroy, 1u, unsigned{CU_USER_OBJECT_NO_DESTRUCTOR_SYNC}) ==
      CUDA_SUCCESS)
    (void)HAND(cuUserObjectRelease, object, 1u);
}

}  // namespace

void make_calls() {
  CUdeviceptr there = 0;
  CUstream stream = nullptr;
  (void)HAND(cuMemAlloc_v2, &there, std::size_t{4096});
  (void)MADE(cuStreamCreate, &stream, unsigned{CU_STREAM_NON_BLOCKING});
  copy(there);
  copy_later(there, stream);
  use_module(code, true);
  use_module(unreadable, false);
  use_library();
  link_and_load();
  ask(stream);
  use_graph(there, stream);
  capture(stream, there);
  run_host_function(stream);
  use_managed();
  (void)HAND(cuMemFree_v2, there);
  (void)HAND(cuCtxSynchronize);
}

void forget_calls() {
  frontend::process& p = frontend::process::instance();
  (void)HAND(cuDevicePrimaryCtxReset_v2, 0);
  for (int kind = 1; kind < static_cast<int>(api::handle_kind::count); ++kind) {
    if (static_cast<api::handle_kind>(kind) == api::handle_kind::context) continue;
    frontend::handle_table& table = p.handles[static_cast<api::handle_kind>(kind)];
    std::vector<std::uint64_t> left;
    table.each([&](std::uint64_t handle, frontend::object&) { left.push_back(handle); });
    for (const std::uint64_t handle : left) table.release(handle);
  }
  // In a lost session memory could not be unregistered, and its owner has freed it since.
  p.handles[api::handle_kind::context].each(
      [&](std::uint64_t handle, frontend::object&) { (void)p.memory.mirrors.remove_context(handle); });
  (void)p.memory.addresses.remove_if([](const frontend::memory_block&) { return true; });
}

}  // namespace outboard::fuzz
