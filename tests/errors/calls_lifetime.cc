// Calls that are correct but come at the wrong time: after a reset, after their context's end, after fork,
// and after a sticky error.
#include "world.hh"

namespace wrong_calls {

namespace {

void nothing(void*) {}
CUresult launch(CUfunction f, CUstream s) {
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr);
}

struct timely {
  const char* name;
  int (*call)();
  bool changes = false;  ///< a success changes what the next call finds
  bool object = false;   ///< uses a stream, an event or an array
};
#define TIMELY(name, changes, object, ...)                     \
  timely {                                                     \
    name, []() -> int { return __VA_ARGS__; }, changes, object \
  }
#define CALL(name, ...) TIMELY(name, false, false, __VA_ARGS__)
#define CHANGE(name, ...) TIMELY(name, true, false, __VA_ARGS__)
#define ON_OBJECT(name, ...) TIMELY(name, false, true, __VA_ARGS__)
#define CHANGE_OBJECT(name, ...) TIMELY(name, true, true, __VA_ARGS__)

/// Calls that a program is likely to make next.
const timely everyday[] = {
    CALL("cuInit", cuInit(0)),
    CALL("cuDriverGetVersion", cuDriverGetVersion(&o.i)),
    CALL("cuDeviceGet", cuDeviceGet(&o.device, 0)),
    CALL("cuDeviceGetCount", cuDeviceGetCount(&o.i)),
    CALL("cuDeviceGetName", cuDeviceGetName(o.text, 64, 0)),
    CALL("cuDeviceGetAttribute", cuDeviceGetAttribute(&o.i, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)),
    CALL("cuDeviceTotalMem", cuDeviceTotalMem(&o.n, 0)),
    CALL("cuCtxGetCurrent", cuCtxGetCurrent(&o.context)),
    CALL("cuCtxGetDevice", cuCtxGetDevice(&o.device)),
    CALL("cuCtxGetFlags", cuCtxGetFlags(&o.u)),
    CALL("cuCtxGetLimit", cuCtxGetLimit(&o.n, CU_LIMIT_STACK_SIZE)),
    CHANGE("cuCtxSetLimit", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)),
    CALL("cuCtxSynchronize", cuCtxSynchronize()),
    CHANGE("cuCtxSetCurrent", cuCtxSetCurrent(w.context)),
    CHANGE("cuCtxPushCurrent", cuCtxPushCurrent(w.context)),
    CHANGE("cuCtxPopCurrent", cuCtxPopCurrent(&o.context)),
    CALL("cuCtxGetApiVersion", cuCtxGetApiVersion(w.context, &o.u)),
    CALL("cuCtxGetId", cuCtxGetId(w.context, &o.l)),
    CHANGE("cuCtxCreate", cuCtxCreate(&o.context, nullptr, 0, 0)),
    CHANGE("cuCtxDestroy", cuCtxDestroy(w.context)),
    CHANGE("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&o.context, 0)),
    CALL("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState(0, &o.u, &o.i)),
    CHANGE("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease(0)),
    CHANGE("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(0)),
    CALL("cuModuleLoadData", cuModuleLoadData(&o.module, text_of_module)),
    CALL("cuModuleGetFunction", cuModuleGetFunction(&o.function, w.module, "store")),
    CALL("cuModuleGetGlobal", cuModuleGetGlobal(&o.d, &o.n, w.module, "number")),
    CHANGE("cuModuleUnload", cuModuleUnload(w.module)),
    CALL("cuLibraryLoadData",
         cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 0)),
    CALL("cuLibraryGetKernel", cuLibraryGetKernel(&o.kernel, w.library, "store")),
    CHANGE("cuLibraryUnload", cuLibraryUnload(w.library)),
    CALL("cuKernelGetFunction", cuKernelGetFunction(&o.function, w.kernel)),
    CALL("cuFuncGetAttribute", cuFuncGetAttribute(&o.i, CU_FUNC_ATTRIBUTE_NUM_REGS, w.function)),
    CALL("cuMemGetInfo", cuMemGetInfo(&o.n, &o.n2)),
    CALL("cuMemAlloc", cuMemAlloc(&o.d, 64)),
    CHANGE("cuMemFree", cuMemFree(w.memory)),
    CALL("cuMemHostAlloc", cuMemHostAlloc(&o.p, 64, 0)),
    CHANGE("cuMemFreeHost", cuMemFreeHost(w.pinned)),
    CHANGE("cuMemHostRegister", cuMemHostRegister(host, 4096, 0)),
    CALL("cuMemGetAddressRange", cuMemGetAddressRange(&o.d, &o.n, w.memory)),
    CALL("cuMemcpyHtoD", cuMemcpyHtoD(w.memory, host, 64)),
    CALL("cuMemcpyDtoH", cuMemcpyDtoH(host, w.memory, 64)),
    CALL("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync(w.memory, host, 64, w.stream)),
    CALL("cuMemsetD8", cuMemsetD8(w.memory, 0, 64)),
    ON_OBJECT("cuMemsetD8Async", cuMemsetD8Async(w.memory, 0, 64, w.stream)),
    ON_OBJECT("cuMemAllocAsync", cuMemAllocAsync(&o.d, 64, w.stream)),
    CALL("cuMemAllocManaged", cuMemAllocManaged(&o.d, 64, CU_MEM_ATTACH_GLOBAL)),
    CALL("cuMemAddressReserve", cuMemAddressReserve(&o.d, 2 << 20, 0, 0, 0)),
    CALL("cuPointerGetAttribute", cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w.memory)),
    CHANGE_OBJECT("cuArrayDestroy", cuArrayDestroy(w.array)),
    CALL("cuStreamCreate", cuStreamCreate(&o.stream, 0)),
    ON_OBJECT("cuStreamSynchronize", cuStreamSynchronize(w.stream)),
    CALL("cuStreamSynchronize.default", cuStreamSynchronize(nullptr)),
    ON_OBJECT("cuStreamQuery", cuStreamQuery(w.stream)),
    ON_OBJECT("cuStreamWaitEvent", cuStreamWaitEvent(w.stream, w.event, 0)),
    ON_OBJECT("cuStreamGetFlags", cuStreamGetFlags(w.stream, &o.u)),
    ON_OBJECT("cuStreamIsCapturing",
              [] {
                CUstreamCaptureStatus s;
                return cuStreamIsCapturing(w.stream, &s);
              }()),
    CHANGE_OBJECT("cuStreamBeginCapture", cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL)),
    CHANGE("cuStreamDestroy", cuStreamDestroy(w.stream)),
    CALL("cuEventCreate", cuEventCreate(&o.event, 0)),
    ON_OBJECT("cuEventRecord", cuEventRecord(w.event, w.stream)),
    ON_OBJECT("cuEventQuery", cuEventQuery(w.event)),
    ON_OBJECT("cuEventSynchronize", cuEventSynchronize(w.event)),
    CHANGE_OBJECT("cuEventDestroy", cuEventDestroy(w.event)),
    CALL("cuGraphCreate", cuGraphCreate(&o.graph, 0)),
    CALL("cuGraphInstantiate", cuGraphInstantiate(&o.exec, w.graph, 0)),
    ON_OBJECT("cuGraphLaunch", cuGraphLaunch(w.exec, w.stream)),
    CHANGE("cuGraphExecDestroy", cuGraphExecDestroy(w.exec)),
    CHANGE("cuGraphDestroy", cuGraphDestroy(w.graph)),
    CALL("cuLaunchKernel", launch(w.function, w.stream)),
    CALL("cuLaunchKernel.default", launch(w.function, nullptr)),
    ON_OBJECT("cuLaunchHostFunc", cuLaunchHostFunc(w.stream, nothing, nullptr)),
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor",
         cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, 32, 0)),
    CALL("cuProfilerStart", cuProfilerStart()),
    CALL("cuDeviceCanAccessPeer", cuDeviceCanAccessPeer(&o.i, 0, 0)),
    CALL("cuGetErrorName", cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &o.name)),
};

}  // namespace

calls lifetime_calls() {
  struct moment {
    const char* name;
    const state *state_of_calls, *state_of_changes;
  };
  const moment moments[] = {{"after_reset", &after_reset, &after_reset_alone},
                            {"after_destroy", &after_destroy, &after_destroy_alone},
                            {"after_fork", &after_fork, &after_fork},
                            {"after_trap", &after_trap, &after_trap_alone},
                            {"after_wild", &after_wild, &after_wild_alone},
                            {"no_context", &no_context, &without_context}};
  calls all;
  for (const moment& m : moments) {
    for (const auto& c : everyday) {
      // A driver does not notice that a stream or an event belongs to the parent: it returns success and does
      // nothing.
      if (m.state_of_calls == &after_fork && c.object) continue;
      // The driver may have reused the memory of a destroyed context.
      if (m.state_of_calls == &after_destroy && std::strcmp(c.name, "cuCtxDestroy") == 0) continue;
      all.push_back(
          {std::string(c.name) + "@" + m.name, c.changes ? m.state_of_changes : m.state_of_calls, c.call});
    }
  }
  return all;
}

}  // namespace wrong_calls
