// The corners of the driver API that few programs reach: launches of CUDA 3, batches of shaped copies, events
// of whole contexts, memory of graphs, the log of failed calls, attributes of core dumps, notifications,
// locks for checkpoints, foreign memory and semaphores, and the driver's codes for what makes no sense. With
// the argument "mock" the device computes nothing: then only codes are compared.
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "corners.hh"

namespace {

void old_launches() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  MUST(cuModuleLoadData(&module, store_value));
  MUST(cuModuleGetFunction(&store, module, "store"));
  CUdeviceptr at = allocate(64);
  CODE(CUDA_ERROR_INVALID_HANDLE, cuFuncSetBlockShape(nullptr, 4, 1, 1));
  CODE(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(store, 0, 1, 1));
  MUST(cuFuncSetBlockShape(store, 4, 1, 1));
  MUST(cuFuncSetSharedSize(store, 0));
  MUST(cuParamSetv(store, 0, &at, sizeof at));
  MUST(cuParamSeti(store, sizeof at, 41));
  MUST(cuParamSetSize(store, sizeof at + 4));
  MUST(cuLaunch(store));
  MUST(cuCtxSynchronize());
  EXPECT(!computes || (word_at(at) == 41 && word_at(at + 12) == 41 && word_at(at + 16) == 0));
  MUST(cuParamSeti(store, sizeof at, 42));
  MUST(cuLaunchGrid(store, 1, 1));
  MUST(cuCtxSynchronize());
  EXPECT(!computes || word_at(at) == 42);
  CODE(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(store, 0, 1));
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuParamSeti(store, sizeof at, 43));
  MUST(cuLaunchGridAsync(store, 1, 1, stream));
  MUST(cuStreamSynchronize(stream));
  EXPECT(!computes || word_at(at) == 43);
  MUST(cuStreamDestroy(stream));
  MUST(cuMemFree(at));
  MUST(cuModuleUnload(module));
}

CUDA_MEMCPY3D_BATCH_OP between(CUdeviceptr to, CUdeviceptr from, CUextent3D extent) {
  CUDA_MEMCPY3D_BATCH_OP op{};
  op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.op.ptr.ptr = from, op.dst.op.ptr.ptr = to;
  op.extent = extent;
  op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return op;
}

void batches() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr a = allocate(4096), b = allocate(4096);
  unsigned char host[128], back[128];
  for (int i = 0; i < 128; ++i) host[i] = static_cast<unsigned char>(i + 1);
  const auto pointer = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };
  CUDA_MEMCPY3D_BATCH_OP ops[3] = {between(a, pointer(host), {16, 4, 2}), between(b, a, {16, 4, 2}),
                                   between(pointer(back), b, {8, 4, 2})};
  ops[2].src.op.ptr.rowLength = 16;
  // The copies of one batch may run in any order.
  for (CUDA_MEMCPY3D_BATCH_OP& op : ops) MUST(cuMemcpy3DBatchAsync(1, &op, 0, stream));
  MUST(cuStreamSynchronize(stream));
  EXPECT(!computes || (back[0] == 1 && back[7] == 8 && back[8] == 17 && back[63] == 120));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(0, ops, 0, stream));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, nullptr, 0, stream));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, ops, 1, stream));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, ops, 0, nullptr));
  MUST(cuMemcpy3DBatchAsync(1, ops, 0, CU_STREAM_PER_THREAD));
  ops[0].extent.width = 0;
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, ops, 0, stream));
  MUST(cuCtxSynchronize());
  MUST(cuStreamDestroy(stream));
  MUST(cuMemFree(a));
  MUST(cuMemFree(b));
}

void events_of_contexts() {
  CUevent event = nullptr;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuCtxRecordEvent(context, event));
  MUST(cuCtxWaitEvent(context, event));
  MUST(cuEventSynchronize(event));
  CODE(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(nullptr, event));
  CODE(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context, nullptr));
  CODE(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(nullptr, event));
  CODE(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(context, nullptr));
  if (computes) {
    // The event waits for earlier work in every stream, and holds back later work in every stream.
    CUstream first = nullptr, second = nullptr;
    MUST(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    const CUdeviceptr flag = allocate(8);
    std::atomic<bool> release{false};
    MUST(cuLaunchHostFunc(
        first,
        [](void* go) {
          while (!static_cast<std::atomic<bool>*>(go)->load()) std::this_thread::yield();
        },
        &release));
    MUST(cuMemsetD32Async(flag, 5, 1, first));
    MUST(cuCtxRecordEvent(context, event));
    CODE(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    MUST(cuCtxWaitEvent(context, event));
    MUST(cuMemcpyDtoDAsync(flag + 4, flag, 4, second));
    CODE(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
    release = true;
    MUST(cuStreamSynchronize(second));
    EXPECT(word_at(flag + 4) == 5);
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(context, event));
    CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(first, &graph));
    MUST(cuStreamDestroy(first));
    MUST(cuStreamDestroy(second));
    MUST(cuMemFree(flag));
  }
  MUST(cuEventDestroy(event));
}

void memory_of_graphs() {
  cuuint64_t value = 1;
  CODE(CUDA_ERROR_INVALID_VALUE,
       cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, nullptr));
  MUST(cuDeviceGraphMemTrim(device));
  if (!computes) return;
  CODE(CUDA_ERROR_INVALID_VALUE,
       cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(99));
  value = 0;
  CODE(CUDA_ERROR_INVALID_VALUE,
       cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
  MUST(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.poolProps.location.id = device;
  p.bytesize = 4096;
  MUST(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphLaunch(exec, nullptr));
  MUST(cuCtxSynchronize());
  // The address belongs to a device: unified copies use that device, and attributes say so.
  unsigned in[4] = {1, 2, 3, 4}, out[4] = {};
  MUST(cuMemcpy(p.dptr, reinterpret_cast<CUdeviceptr>(in), sizeof in));
  MUST(cuMemcpy(reinterpret_cast<CUdeviceptr>(out), p.dptr, sizeof out));
  EXPECT(out[3] == 4);
  unsigned type = 0;
  MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p.dptr));
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  MUST(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
  EXPECT(value >= 4096);
  MUST(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  EXPECT(value >= 4096);
  MUST(cuMemFree(p.dptr));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
}

/// Copies of every shape, and within the program's memory, as nodes.
void copies_in_graphs() {
  if (!computes) return;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr at = allocate(256);
  static unsigned char source[64], moved[64], target[64];
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(
      cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(moved), reinterpret_cast<CUdeviceptr>(source), 64, stream));
  CUDA_MEMCPY2D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST, box.srcHost = moved, box.srcPitch = 16;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE, box.dstDevice = at, box.dstPitch = 32;
  box.WidthInBytes = 8, box.Height = 4;
  MUST(cuMemcpy2DAsync(&box, stream));
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE, out.srcDevice = at, out.srcPitch = 32;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = target, out.dstPitch = 8;
  out.WidthInBytes = 8, out.Height = 4;
  MUST(cuMemcpy2DAsync(&out, stream));
  MUST(cuStreamEndCapture(stream, &graph));
  CUgraphNode nodes[8];
  std::size_t count = 8;
  MUST(cuGraphGetNodes(graph, nodes, &count));
  EXPECT(count == 3);
  for (std::size_t i = 0; i < count; ++i) {
    CUgraphNodeType type{};
    MUST(cuGraphNodeGetType(nodes[i], &type));
    EXPECT(type == CU_GRAPH_NODE_TYPE_MEMCPY);
    CUDA_MEMCPY3D p{};
    MUST(cuGraphMemcpyNodeGetParams(nodes[i], &p));
    EXPECT(p.WidthInBytes == (p.Height == 1 ? 64u : 8u));
  }
  MUST(cuGraphInstantiate(&exec, graph, 0));
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 64; ++i) source[i] = static_cast<unsigned char>(round * 100 + i);
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    for (int i = 0; i < 32; ++i) EXPECT(target[i] == source[i / 8 * 16 + i % 8]);
    EXPECT(std::memcmp(source, moved, 64) == 0);
  }
  // The same, added by hand.
  CUgraph made = nullptr;
  CUgraphNode copy = nullptr;
  MUST(cuGraphCreate(&made, 0));
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_HOST;
  p.srcHost = source, p.dstHost = target;
  p.srcPitch = p.dstPitch = 16;
  p.WidthInBytes = 4, p.Height = 4, p.Depth = 1;
  MUST(cuGraphAddMemcpyNode(&copy, made, nullptr, 0, &p, context));
  CUDA_MEMCPY3D told{};
  MUST(cuGraphMemcpyNodeGetParams(copy, &told));
  EXPECT(told.srcHost == source && told.WidthInBytes == 4);
  CUDA_HOST_NODE_PARAMS none{};
  CODE(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeGetParams(copy, &none));
  CUgraphExec made_exec = nullptr;
  MUST(cuGraphInstantiate(&made_exec, made, 0));
  std::memset(target, 0, sizeof target);
  MUST(cuGraphLaunch(made_exec, stream));
  MUST(cuStreamSynchronize(stream));
  EXPECT(target[0] == source[0] && target[4] == 0 && target[51] == source[51]);
  MUST(cuGraphExecDestroy(made_exec));
  MUST(cuGraphDestroy(made));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuStreamDestroy(stream));
  MUST(cuMemFree(at));
}

int told = 0;
std::string last_message;

void logs() {
  CUlogsCallbackHandle handle = nullptr;
  const auto listen = [](void* data, CUlogLevel level, char* message, size_t length) {
    EXPECT(data == &told && level == CU_LOG_LEVEL_ERROR && length == std::strlen(message));
    ++told;
    last_message = message;
  };
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(nullptr, nullptr, &handle));
  MUST(cuLogsRegisterCallback(listen, &told, &handle));
  CUlogIterator before = 0, after = 0;
  MUST(cuLogsCurrent(&before, 0));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1234));
  EXPECT(told >= 1 && last_message == "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2");
  MUST(cuLogsCurrent(&after, 0));
  EXPECT(after > before);
  char text[512];
  std::size_t size = sizeof text;
  CUlogIterator from = before;
  MUST(cuLogsDumpToMemory(&from, text, &size, 0));
  EXPECT(from == after && size == std::strlen(text) && text[size - 1] == '\n');
  EXPECT(std::strstr(text, "[CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2") != nullptr);
  size = sizeof text;
  MUST(cuLogsDumpToMemory(&from, text, &size, 0));
  EXPECT(size == 0);
  size = 4;
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(nullptr, text, &size, 0));
  EXPECT(size == 0);
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(nullptr, text, nullptr, 0));
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(nullptr, 0));
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(nullptr, "/nonexistent/log", 0));
  char path[] = "/tmp/driver_corners.XXXXXX";
  const int file = ::mkstemp(path);
  EXPECT(file >= 0);
  MUST(cuLogsDumpToFile(nullptr, path, 0));
  EXPECT(::read(file, text, sizeof text) > 0 && text[0] == '[');
  ::close(file);
  ::unlink(path);
  CODE(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(nullptr));
  MUST(cuLogsUnregisterCallback(handle));
  const int heard = told;
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1234));
  EXPECT(told == heard);
}

void core_dumps() {
  std::size_t size = 0;
  bool flag = true;
  int number = 5;
  char text[1100];
  MUST(cuCoredumpGetAttribute(CU_COREDUMP_FILE, nullptr, &size));
  EXPECT(size == 1024);
  size = 1;
  MUST(cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &flag, &size));
  EXPECT(!flag);
  MUST(cuCoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &flag, &size));
  EXPECT(flag);
  CODE(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_PIPE, text, &size));
  CODE(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(static_cast<CUcoredumpSettings>(8), text, &size));
  CODE(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, nullptr));
  size = 4;
  MUST(cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &number, &size));
  number = 0;
  MUST(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &number, &size));
  EXPECT(number == 0);  // later contexts begin with it
  MUST(cuCoredumpGetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &number, &size));
  EXPECT(number == 5);
  size = 1;
  CODE(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &number, &size));
  char name[] = "core.of.this";
  size = sizeof name;
  MUST(cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &size));
  size = sizeof text;
  MUST(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
  EXPECT(std::strcmp(text, name) == 0);
  MUST(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
  EXPECT(text[0] == 0);
}

void notifications() {
  CUasyncCallbackHandle handle = nullptr;
  const auto never = [](CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) { std::abort(); };
  CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceRegisterAsyncNotification(device, nullptr, nullptr, &handle));
  CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceRegisterAsyncNotification(99, never, nullptr, &handle));
  MUST(cuDeviceRegisterAsyncNotification(device, never, nullptr, &handle));
  CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(device, nullptr));
  CODE(CUDA_ERROR_INVALID_DEVICE, cuDeviceUnregisterAsyncNotification(99, handle));
  MUST(cuDeviceUnregisterAsyncNotification(device, handle));
}

void checkpoints() {
  CUprocessState state{};
  const int own = ::getpid();
  MUST(cuCheckpointProcessGetState(own, &state));
  EXPECT(state == CU_PROCESS_STATE_RUNNING);
  CODE(CUDA_ERROR_INVALID_VALUE, cuCheckpointProcessGetState(own, nullptr));
  CODE(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessGetState(999999999, &state));
  CODE(CUDA_ERROR_NOT_INITIALIZED, cuCheckpointProcessGetState(1, &state));
  CODE(CUDA_ERROR_ILLEGAL_STATE, cuCheckpointProcessUnlock(own, nullptr));
  CODE(CUDA_ERROR_ILLEGAL_STATE, cuCheckpointProcessCheckpoint(own, nullptr));
  CODE(CUDA_ERROR_ILLEGAL_STATE, cuCheckpointProcessRestore(own, nullptr));
  CUcheckpointLockArgs arguments{};
  arguments.reserved0 = 1;
  CODE(CUDA_ERROR_INVALID_VALUE, cuCheckpointProcessLock(own, &arguments));
  const CUdeviceptr word = allocate(4);
  MUST(cuCheckpointProcessLock(own, nullptr));
  CODE(CUDA_ERROR_ILLEGAL_STATE, cuCheckpointProcessLock(own, nullptr));
  MUST(cuCheckpointProcessGetState(own, &state));
  EXPECT(state == CU_PROCESS_STATE_LOCKED);
  std::atomic<bool> begun{false}, through{false};
  std::thread other([&] {
    begun = true;
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemsetD8(word, 1, 4));
    through = true;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT(!through);
  MUST(cuCheckpointProcessUnlock(own, nullptr));
  other.join();
  EXPECT(through);
  MUST(cuMemFree(word));
}

void foreign_objects() {
  CUexternalMemory memory = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC about{};
  about.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  about.size = 1 << 21;
  about.handle.fd = -1;
  CODE(CUDA_ERROR_UNKNOWN, cuImportExternalMemory(&memory, &about));
  about.handle.fd = ::open("/dev/null", O_RDONLY);
  CODE(CUDA_ERROR_UNKNOWN, cuImportExternalMemory(&memory, &about));
  CODE(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(nullptr, &about));
  CODE(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&memory, nullptr));
  about.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32;
  about.handle = {};
  CODE(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&memory, &about));
  CODE(CUDA_ERROR_INVALID_VALUE, cuDestroyExternalMemory(nullptr));
  CUdeviceptr at = 0;
  CODE(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&at, nullptr, nullptr));
  CUexternalSemaphore semaphore = nullptr;
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC s{};
  s.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
  s.handle.fd = -1;
  CODE(CUDA_ERROR_UNKNOWN, cuImportExternalSemaphore(&semaphore, &s));
  s.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE;
  s.handle = {};
  CODE(CUDA_ERROR_INVALID_VALUE, cuImportExternalSemaphore(&semaphore, &s));
  CODE(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr));
  CODE(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr));
}

}  // namespace

int main(int count, char** values) {
  begin(count, values);
  old_launches();
  batches();
  events_of_contexts();
  memory_of_graphs();
  copies_in_graphs();
  logs();
  core_dumps();
  notifications();
  checkpoints();
  foreign_objects();
  return pass("driver_corners");
}
