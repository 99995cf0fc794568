// A program with a profiler of its own inside: CUPTI's activities and callbacks, as torch.profiler uses them.
// It checks what it is told of its calls and of the device's work, and prints PASS. Natively the same.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common.hh"

__global__ void increment(int* at, int by) { atomicAdd(at, by); }
__global__ void twice(int* at) { *at *= 2; }
__global__ void busy(volatile int* at, int rounds) {
  for (int i = 0; i < rounds; ++i) *at = *at + 1;
}

struct work {
  std::string name;  // of a kernel
  uint32_t call, stream, context;
  uint64_t begin, end, bytes, node;
  unsigned from, to;
};
struct made {
  bool runtime;
  uint32_t function, result;
  uint64_t begin, end;
};

const CUpti_ActivityKind wanted[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY,
                                     CUPTI_ACTIVITY_KIND_MEMSET,
                                     CUPTI_ACTIVITY_KIND_RUNTIME,
                                     CUPTI_ACTIVITY_KIND_DRIVER,
                                     CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                     CUPTI_ACTIVITY_KIND_CUDA_EVENT};
// Natively these come only to a profiler that wants them before the first call of CUDA.
const CUpti_ActivityKind wanted_early[] = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT};

std::mutex mutex;
std::vector<work> kernels, copies, fills;
std::map<uint32_t, made> calls;                        // by correlation
std::map<uint32_t, std::map<int, uint64_t>> external;  // the same
struct wait {
  int type;
  uint32_t call, context, stream, event;
  uint64_t begin, end;
};
std::vector<wait> waits;
std::vector<CUpti_ActivityCudaEvent2> events;
std::vector<CUpti_ActivityOverhead3> overheads;
std::map<uint32_t, CUpti_ActivityDevice5> devices;
std::map<uint32_t, CUpti_ActivityContext3> contexts;
std::atomic<int> asked{0};
int buffers = 0;

void give(uint8_t** buffer, size_t* size, size_t* most) {
  ++asked;
  *size = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void take(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++buffers;
  CUpti_Activity* record = nullptr;
  CUptiResult code;
  while ((code = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(record);
        kernels.push_back({k->name, k->correlationId, k->streamId, k->contextId, k->start, k->end,
                           static_cast<uint64_t>(k->gridX) * k->blockX, k->graphNodeId, 0, 0});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* c = reinterpret_cast<CUpti_ActivityMemcpy6*>(record);
        copies.push_back({"", c->correlationId, c->streamId, c->contextId, c->start, c->end, c->bytes, 0,
                          c->srcKind, c->dstKind});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* f = reinterpret_cast<CUpti_ActivityMemset4*>(record);
        fills.push_back({"", f->correlationId, f->streamId, f->contextId, f->start, f->end, f->bytes, 0, 0,
                         f->memoryKind});
        break;
      }
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER: {
        const auto* c = reinterpret_cast<CUpti_ActivityAPI*>(record);
        calls[c->correlationId] = {c->kind == CUPTI_ACTIVITY_KIND_RUNTIME, c->cbid, c->returnValue, c->start,
                                   c->end};
        break;
      }
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto* e = reinterpret_cast<CUpti_ActivityExternalCorrelation*>(record);
        external[e->correlationId][e->externalKind] = e->externalId;
        break;
      }
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto* s = reinterpret_cast<CUpti_ActivitySynchronization2*>(record);
        waits.push_back({static_cast<int>(s->type), s->correlationId, s->contextId, s->streamId,
                         s->cudaEventId, s->start, s->end});
        break;
      }
      case CUPTI_ACTIVITY_KIND_OVERHEAD:
        overheads.push_back(*reinterpret_cast<CUpti_ActivityOverhead3*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        events.push_back(*reinterpret_cast<CUpti_ActivityCudaEvent2*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_DEVICE: {
        const auto* d = reinterpret_cast<CUpti_ActivityDevice5*>(record);
        devices[d->id] = *d;
        break;
      }
      case CUPTI_ACTIVITY_KIND_CONTEXT: {
        const auto* c = reinterpret_cast<CUpti_ActivityContext3*>(record);
        contexts[c->contextId] = *c;
        break;
      }
      default:
        break;
    }
  }
  EXPECT(code == CUPTI_ERROR_MAX_LIMIT_REACHED);
  // Here is where profilers ask, and nothing of this may wait for itself.
  size_t lost = 0;
  uint64_t now = 0;
  MUST(cuptiActivityGetNumDroppedRecords(context, stream, &lost));
  MUST(cuptiGetTimestamp(&now));
  EXPECT(lost == 0);
  std::free(buffer);
}

struct told {
  std::string name, symbol;
  uint32_t call;
  bool enters;
};
std::vector<told> callbacks;
int waits_told = 0;

void CUPTIAPI called(void* data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* about) {
  const auto* c = static_cast<const CUpti_CallbackData*>(about);
  if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
    EXPECT(id == CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);
    EXPECT(static_cast<const CUpti_SynchronizeData*>(about)->context);
    ++waits_told;
  }
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  EXPECT(data == &callbacks);
  const bool enters = c->callbackSite == CUPTI_API_ENTER;
  if (enters) *c->correlationData = c->correlationId * 7ull;
  if (!enters) EXPECT(*c->correlationData == c->correlationId * 7ull);
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020) {
    // Arguments as the headers' struct has them.
    const auto* p = static_cast<const cudaMemset_v3020_params*>(c->functionParams);
    EXPECT(p->value == 3 && p->count == 256);
    if (!enters) EXPECT(*static_cast<cudaError_t*>(c->functionReturnValue) == cudaSuccess);
  }
  callbacks.push_back({c->functionName, c->symbolName ? c->symbolName : "", c->correlationId, enters});
}

uint32_t call_of(uint32_t function, bool runtime, int which = 0) {
  for (const auto& one : calls) {
    if (one.second.function == function && one.second.runtime == runtime && which-- == 0) return one.first;
  }
  std::printf("FAIL: no record of function %u\n", function);
  std::exit(1);
}

const work& of_call(const std::vector<work>& all, uint32_t call) {
  for (const work& w : all) {
    if (w.call == call) return w;
  }
  std::printf("FAIL: no work of call %u\n", call);
  std::exit(1);
}

void forget() {
  const std::lock_guard<std::mutex> lock(mutex);
  kernels.clear(), copies.clear(), fills.clear(), calls.clear(), external.clear(), waits.clear();
  events.clear();
}

/// Who waits for an event names the one that was recorded.
void events_are_told_of(cudaStream_t side) {
  cudaEvent_t first = nullptr, second = nullptr;
  MUST(cudaEventCreateWithFlags(&first, cudaEventDisableTiming));
  MUST(cudaEventCreateWithFlags(&second, cudaEventDisableTiming));
  forget();
  MUST(cudaEventRecord(first, side));
  MUST(cudaEventRecord(second, side));
  MUST(cudaStreamWaitEvent(nullptr, second));
  MUST(cudaEventSynchronize(first));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  CUcontext context = nullptr;
  uint32_t stream = 0;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuptiGetStreamIdEx(context, side, 0, &stream));
  EXPECT(events.size() == 2 && events[0].eventId != events[1].eventId);
  EXPECT(events[0].streamId == stream && events[1].streamId == stream);
  EXPECT(calls[events[0].correlationId].function == CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);
  std::map<int, uint32_t> event_of;
  for (const wait& w : waits) event_of[w.type] = w.event;
  EXPECT(event_of[CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE] == events[0].eventId);
  EXPECT(event_of[CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT] == events[1].eventId);
}

bool recorded_between(uint32_t event, uint32_t stream, uint64_t begin, uint64_t end) {
  for (const CUpti_ActivityCudaEvent2& e : events) {
    const made& call = calls.at(e.correlationId);
    if (e.eventId == event && e.streamId == stream && call.begin >= begin && call.end <= end) return true;
  }
  return false;
}

/// The first wait that returned for this kernel: it began when the launch had returned, and was for the
/// kernel's stream, its context, or an event that was recorded behind it.
const wait* wait_for(const work& kernel) {
  const uint64_t launched = calls.at(kernel.call).end;
  const wait* first = nullptr;
  for (const wait& w : waits) {
    if (w.begin < launched || (first && first->end <= w.end)) continue;
    const bool stream =
        w.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE && w.stream == kernel.stream;
    const bool context =
        w.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE && w.context == kernel.context;
    const bool event = w.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE &&
                       recorded_between(w.event, kernel.stream, launched, w.begin);
    if (stream || context || event) first = &w;
  }
  return first;
}

/// Each kernel begins after the call that launched it began, and ends before the wait that returned for it.
void each_kernel_lies_between_its_calls(int* at) {
  cudaStream_t streams[3] = {};
  cudaEvent_t behind[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&behind[i], cudaEventDisableTiming));
  }
  forget();
  const int rounds = 36;
  for (int i = 0; i < rounds; ++i) {
    for (int s = 0; s < 3; ++s) {
      busy<<<1, 1, 0, streams[s]>>>(at + s, 100 + 50 * (i % 5));
      if (i % 3 == 0) MUST(cudaEventRecord(behind[s], streams[s]));
    }
    // By the runtime's functions and by the driver's.
    if (i % 3 == 2)
      MUST(i % 2 ? static_cast<int>(cudaDeviceSynchronize()) : static_cast<int>(cuCtxSynchronize()));
    for (int s = 0; s < 3 && i % 3 == 0; ++s)
      MUST(i % 2 ? static_cast<int>(cudaEventSynchronize(behind[s]))
                 : static_cast<int>(cuEventSynchronize(behind[s])));
    for (int s = 0; s < 3 && i % 3 == 1; ++s)
      MUST(i % 2 ? static_cast<int>(cudaStreamSynchronize(streams[s]))
                 : static_cast<int>(cuStreamSynchronize(streams[s])));
  }
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(kernels.size() == 3 * rounds);
  const int64_t slack = 5000;  // of the clocks of one host, nanoseconds
  int64_t early = INT64_MAX, late = INT64_MAX;
  for (const work& k : kernels) {
    const wait* const returned = wait_for(k);
    EXPECT(returned);
    early = std::min(early, static_cast<int64_t>(k.begin - calls.at(k.call).begin));
    late = std::min(late, static_cast<int64_t>(returned->end - k.end));
  }
  std::printf(
      "%zu kernels begin %.1f us and more behind their launch, and end %.1f us and more before their wait "
      "does\n",
      kernels.size(), static_cast<double>(early) / 1000, static_cast<double>(late) / 1000);
  EXPECT(early + slack >= 0 && late + slack >= 0);
}

/// What the profiler itself takes: its flushes.
void overhead_is_told_of(int* at) {
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD));
  uint64_t before = 0, after = 0;
  MUST(cuptiGetTimestamp(&before));
  for (int i = 0; i < 2; ++i) {
    increment<<<1, 1>>>(at, 0);
    MUST(cudaDeviceSynchronize());
    MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  }
  MUST(cuptiGetTimestamp(&after));
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_OVERHEAD));
  int flushes = 0;
  for (const CUpti_ActivityOverhead3& o : overheads) {
    if (o.overheadKind != CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH) continue;
    ++flushes;
    EXPECT(o.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD && o.start >= before && o.start <= o.end &&
           o.end <= after + 100000);
    EXPECT(o.objectId.pt.processId == static_cast<uint32_t>(getpid()));
  }
  EXPECT(flushes > 0);
}

/// Kernels of one context alone are wanted.
void one_context_is_looked_at(int* at, CUcontext here, CUcontext there) {
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  MUST(cuptiActivityEnableContext(there, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  forget();
  for (const CUcontext context : {here, there, here}) {
    MUST(cuCtxSetCurrent(context));
    increment<<<1, 1>>>(at, 0);
    MUST(cuCtxSynchronize());
  }
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  uint32_t number = 0;
  MUST(cuptiGetContextId(there, &number));
  EXPECT(kernels.size() == 1 && kernels[0].context == number);
  MUST(cuptiActivityDisableContext(there, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

CUpti_SubscriberHandle switching = nullptr;
uint32_t switched_off = 0;  // the call in which it was

void CUPTIAPI switch_off(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* about) {
  switched_off = static_cast<const CUpti_CallbackData*>(about)->correlationId;
  MUST(cuptiEnableCallback(0, switching, CUPTI_CB_DOMAIN_RUNTIME_API, id));
  for (const CUpti_ActivityKind kind : wanted) MUST(cuptiActivityDisable(kind));
  for (const CUpti_ActivityKind kind : wanted_early) MUST(cuptiActivityDisable(kind));
}

// What was under way when a profiler was switched off has no part in what is looked at later.
void switched_off_inside_a_call(int* at) {
  MUST(cuptiSubscribe(&switching, reinterpret_cast<CUpti_CallbackFunc>(switch_off), nullptr));
  MUST(cuptiEnableCallback(1, switching, CUPTI_CB_DOMAIN_RUNTIME_API,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020));
  MUST(cudaMemset(at, 0, 256));
  EXPECT(switched_off != 0);
  MUST(cuptiUnsubscribe(switching));
  MUST(cuptiActivityFlushAll(0));
  forget();
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  MUST(cuMemsetD8((CUdeviceptr)at, 1, 256));
  MUST(cudaMemset(at, 2, 256));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(call_of(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, false) > switched_off);
  EXPECT(call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, true) > switched_off);
}

// A process may come to hold a library for programs of CUDA 12, too: each reads records of its own version.
void beside_an_older_one(int* at) {
  void* const older = dlopen("libcupti.so.12", RTLD_LAZY | RTLD_LOCAL);
  // NVIDIA's own is not beside the newer one as a rule; Outboard's is.
  if (!dlsym(RTLD_DEFAULT, "outboard_frontend_marker") && !older) return;
  EXPECT(older);
  const auto version_of = reinterpret_cast<CUptiResult (*)(uint32_t*)>(dlsym(older, "cuptiGetVersion"));
  uint32_t version = 0;
  MUST(version_of(&version));
  EXPECT(version < 130000);
  MUST(cuptiGetVersion(&version));
  EXPECT(version == CUPTI_API_VERSION);
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  forget();
  for (int i = 0; i < 100; ++i) increment<<<1, 1>>>(at, 1);
  MUST(cudaDeviceSynchronize());
  MUST(cuptiActivityFlushAll(0));
  EXPECT(kernels.size() == 100);
}

const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() {\n  ret;\n}\n";
std::vector<std::pair<uint32_t, uint32_t>> modules;  // what has happened, to which

void CUPTIAPI module_told(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* about) {
  const auto* resource = static_cast<const CUpti_ResourceData*>(about);
  EXPECT(resource->context && resource->resourceDescriptor);
  modules.emplace_back(id,
                       static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor)->moduleId);
}

void modules_are_told_of() {
  CUpti_SubscriberHandle subscriber = nullptr;
  MUST(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(module_told), nullptr));
  for (const uint32_t id : {CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING})
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
  CUmodule first = nullptr, second = nullptr;
  CUfunction nothing = nullptr;
  for (CUmodule* const module : {&first, &second}) {
    MUST(cuModuleLoadData(module, code));
    MUST(cuModuleGetFunction(&nothing, *module, "nothing"));
    MUST(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  MUST(cuCtxSynchronize());
  EXPECT(modules.size() == 2 && modules[0].second != modules[1].second);
  MUST(cuModuleUnload(first));
  EXPECT(modules.size() == 3 && modules[2].first == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
  EXPECT(modules[2].second == modules[0].second);
  MUST(cuModuleUnload(second));
  MUST(cuptiUnsubscribe(subscriber));
}

int main() {
  uint32_t version = 0;
  MUST(cuptiGetVersion(&version));
  EXPECT(version == CUPTI_API_VERSION);
  MUST(cuptiActivityRegisterCallbacks(give, take));
  for (const CUpti_ActivityKind kind : wanted_early) MUST(cuptiActivityEnable(kind));
  int* at = nullptr;
  MUST(cudaMalloc(&at, 4096));
  increment<<<1, 1>>>(at, 1);  // before anybody looks
  MUST(cudaDeviceSynchronize());

  for (const CUpti_ActivityKind kind : wanted) MUST(cuptiActivityEnable(kind));
  EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE);
  EXPECT(cuptiActivityEnable(static_cast<CUpti_ActivityKind>(9999)) != CUPTI_SUCCESS);

  CUcontext first_one = nullptr, other = nullptr;
  MUST(cuCtxGetCurrent(&first_one));
  MUST(cuCtxCreate(&other, nullptr, 0, 0));
  MUST(cuCtxSetCurrent(first_one));
  uint64_t before = 0, after = 0, popped = 0;
  MUST(cuptiGetTimestamp(&before));
  MUST(cudaMemset(at, 0, 64));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1002));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001));
  increment<<<2, 32>>>(at, 1);
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped));
  EXPECT(popped == 1002);
  int value = 0;
  MUST(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 64);
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped));
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, nullptr));
  EXPECT(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped) ==
         CUPTI_ERROR_QUEUE_EMPTY);

  cudaStream_t side = nullptr;
  MUST(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  twice<<<1, 1, 0, side>>>(at);
  cudaFunction_t function = nullptr;
  MUST(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(twice)));
  void* arguments[] = {&at};
  MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, side, arguments, nullptr));  // not by the runtime
  MUST(cudaStreamSynchronize(side));

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t whole = nullptr;
  MUST(cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal));
  increment<<<1, 1, 0, side>>>(at, 1);
  twice<<<1, 1, 0, side>>>(at);
  MUST(cudaStreamEndCapture(side, &graph));
  MUST(cudaGraphInstantiate(&whole, graph, 0));
  MUST(cudaGraphLaunch(whole, side));
  MUST(cudaStreamSynchronize(side));
  std::thread([&] { increment<<<1, 7>>>(at, 0); }).join();
  MUST(cudaDeviceSynchronize());
  void* none = nullptr;
  EXPECT(cudaMalloc(&none, size_t{1} << 60) == cudaErrorMemoryAllocation);
  (void)cudaGetLastError();
  EXPECT(asked > 0);  // a profiler that was not asked for a buffer does not flush
  MUST(cuptiGetTimestamp(&after));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  size_t dropped = 1;
  MUST(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT(dropped == 0);

  // The device's work, each of it once, and the call that it was done for.
  EXPECT(kernels.size() == 6 && copies.size() == 1 && fills.size() == 1);
  const uint32_t first = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, true);
  const uint32_t second = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, true, 1);
  const uint32_t own = call_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, false);
  const uint32_t launch = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, true);
  const uint32_t copy = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, true);
  const uint32_t fill = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, true);
  EXPECT(of_call(kernels, first).name.find("increment") != std::string::npos);
  EXPECT(of_call(kernels, first).bytes == 64);  // threads
  EXPECT(of_call(kernels, second).name.find("twice") != std::string::npos);
  EXPECT(of_call(kernels, own).name.find("twice") != std::string::npos);
  int nodes = 0;
  for (const work& w : kernels) nodes += w.call == launch;
  EXPECT(nodes == 2);
  EXPECT(of_call(copies, copy).bytes == 4 && of_call(copies, copy).from == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT(of_call(fills, fill).bytes == 64);

  // Who it is, in numbers that can be asked for.
  CUcontext context = nullptr;
  uint32_t number = 0;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuptiGetContextId(context, &number));
  for (const work& w : kernels) EXPECT(w.context == number);
  MUST(cuptiGetContextId(other, &number));
  EXPECT(contexts.count(number) == 1 && contexts[number].deviceId == 0);
  cudaDeviceProp properties;
  MUST(cudaGetDeviceProperties(&properties, 0));
  EXPECT(devices.count(0) == 1 && std::strcmp(devices[0].name, properties.name) == 0);
  EXPECT(devices[0].globalMemorySize == properties.totalGlobalMem);
  EXPECT(devices[0].numMultiprocessors == static_cast<uint32_t>(properties.multiProcessorCount));
  EXPECT(devices[0].computeCapabilityMajor == static_cast<uint32_t>(properties.major));
  MUST(cuptiGetStreamIdEx(context, side, 0, &number));
  EXPECT(of_call(kernels, second).stream == number && of_call(kernels, own).stream == number);
  MUST(cuptiGetStreamIdEx(context, nullptr, 0, &number));
  EXPECT(of_call(kernels, first).stream == number && of_call(copies, copy).stream == number);

  // When: after its call began, before the wait for it returned, in a row on a stream.
  const uint64_t slack = 20000;  // of two clocks, nanoseconds
  for (const std::vector<work>* all : {&kernels, &copies, &fills}) {
    for (const work& w : *all) {
      EXPECT(calls.count(w.call) == 1);
      EXPECT(w.begin <= w.end && w.begin + slack >= calls[w.call].begin);
      EXPECT(w.begin + slack >= before && w.end <= after + slack);
    }
  }
  EXPECT(of_call(copies, copy).end <= calls[copy].end + slack);
  EXPECT(of_call(kernels, second).end <= of_call(kernels, own).begin + slack);
  EXPECT(calls[call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, true)].result == cudaErrorMemoryAllocation);

  // The program's own numbers: of each kind the last one pushed, where there was one.
  EXPECT(external[first][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0] == 1002);
  EXPECT(external[first][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1] == 2001);
  EXPECT(external[copy][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0] == 1001);
  EXPECT(external.count(second) == 0);
  bool waited = false;
  for (const wait& one : waits)
    waited = waited || one.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  EXPECT(waited);

  events_are_told_of(side);
  each_kernel_lies_between_its_calls(at);
  overhead_is_told_of(at);
  one_context_is_looked_at(at, first_one, other);

  // Nothing comes when nothing is wanted, and again when it is.
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER})
    MUST(cuptiActivityDisable(kind));
  MUST(cuptiActivityFlushAll(0));
  forget();
  increment<<<1, 1>>>(at, 1);
  MUST(cudaDeviceSynchronize());
  MUST(cuptiActivityFlushAll(0));
  EXPECT(kernels.empty() && calls.empty());
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  for (int i = 0; i < 2000; ++i) increment<<<1, 1>>>(at, 1);
  MUST(cudaDeviceSynchronize());
  buffers = 0;
  MUST(cuptiActivityFlushAll(0));
  EXPECT(kernels.size() == 2000);

  // Callbacks: both times of a call, with its arguments.
  CUpti_SubscriberHandle subscriber = nullptr, another = nullptr;
  MUST(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(called), &callbacks));
  EXPECT(cuptiSubscribe(&another, reinterpret_cast<CUpti_CallbackFunc>(called), nullptr) ==
         CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                           CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020));
  MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE));
  MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_STATE));
  increment<<<1, 1>>>(at, 1);
  MUST(cudaMemset(at, 3, 256));
  MUST(cudaDeviceSynchronize());
  EXPECT(callbacks.size() == 4 && waits_told == 1);
  EXPECT(callbacks[0].name == "cudaLaunchKernel" && callbacks[0].enters && !callbacks[1].enters);
  EXPECT(callbacks[0].symbol.find("increment") != std::string::npos);
  EXPECT(callbacks[0].call == callbacks[1].call && callbacks[2].name == "cudaMemset");
  const char* name = nullptr;
  MUST(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &name));
  EXPECT(std::strcmp(name, "cuLaunchKernel") == 0);
  MUST(cuptiUnsubscribe(subscriber));
  MUST(cudaMemset(at, 3, 256));
  EXPECT(callbacks.size() == 4);
  modules_are_told_of();
  switched_off_inside_a_call(at);
  beside_an_older_one(at);
  MUST(cuptiFinalize());
  return pass("profiler");
}
