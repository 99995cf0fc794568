// A program with a profiler of its own inside: CUPTI's activities and callbacks, as torch.profiler uses them.
// It checks what it is told of its calls and of the device's work, and prints PASS. Natively the same.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

__global__ void increment(int* at, int by) { atomicAdd(at, by); }
__global__ void twice(int* at) { *at *= 2; }

#define MUST(what)                                                       \
  do {                                                                   \
    const int code_ = static_cast<int>(what);                            \
    if (code_ != 0) {                                                    \
      std::printf("FAIL line %d: %s gave %d\n", __LINE__, #what, code_); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)
#define CHECK(condition)                                       \
  do {                                                         \
    if (!(condition)) {                                        \
      std::printf("FAIL line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                            \
    }                                                          \
  } while (false)

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

std::mutex mutex;
std::vector<work> kernels, copies, fills;
std::map<uint32_t, made> calls;                        // by correlation
std::map<uint32_t, std::map<int, uint64_t>> external;  // the same
std::vector<std::pair<int, uint32_t>> waits;           // type, correlation
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
        waits.emplace_back(s->type, s->correlationId);
        break;
      }
      default:
        break;
    }
  }
  CHECK(code == CUPTI_ERROR_MAX_LIMIT_REACHED);
  // Here is where profilers ask, and nothing of this may wait for itself.
  size_t lost = 0;
  uint64_t now = 0;
  MUST(cuptiActivityGetNumDroppedRecords(context, stream, &lost));
  MUST(cuptiGetTimestamp(&now));
  CHECK(lost == 0);
  std::free(buffer);
}

struct told {
  std::string name, symbol;
  uint32_t call;
  bool enters;
};
std::vector<told> callbacks;

void CUPTIAPI called(void* data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* about) {
  const auto* c = static_cast<const CUpti_CallbackData*>(about);
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  CHECK(data == &callbacks);
  const bool enters = c->callbackSite == CUPTI_API_ENTER;
  if (enters) *c->correlationData = c->correlationId * 7ull;
  if (!enters) CHECK(*c->correlationData == c->correlationId * 7ull);
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020) {
    // Arguments as the headers' struct has them.
    const auto* p = static_cast<const cudaMemset_v3020_params*>(c->functionParams);
    CHECK(p->value == 3 && p->count == 256);
    if (!enters) CHECK(*static_cast<cudaError_t*>(c->functionReturnValue) == cudaSuccess);
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
}

int main() {
  uint32_t version = 0;
  MUST(cuptiGetVersion(&version));
  CHECK(version == CUPTI_API_VERSION);
  MUST(cuptiActivityRegisterCallbacks(give, take));
  int* at = nullptr;
  MUST(cudaMalloc(&at, 4096));
  increment<<<1, 1>>>(at, 1);  // before anybody looks
  MUST(cudaDeviceSynchronize());

  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION})
    MUST(cuptiActivityEnable(kind));
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE);
  CHECK(cuptiActivityEnable(static_cast<CUpti_ActivityKind>(9999)) != CUPTI_SUCCESS);

  uint64_t before = 0, after = 0, popped = 0;
  MUST(cuptiGetTimestamp(&before));
  MUST(cudaMemset(at, 0, 64));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1002));
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001));
  increment<<<2, 32>>>(at, 1);
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped));
  CHECK(popped == 1002);
  int value = 0;
  MUST(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 64);
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped));
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, nullptr));
  CHECK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped) ==
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
  CHECK(cudaMalloc(&none, size_t{1} << 60) == cudaErrorMemoryAllocation);
  (void)cudaGetLastError();
  CHECK(asked > 0);  // a profiler that was not asked for a buffer does not flush
  MUST(cuptiGetTimestamp(&after));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  size_t dropped = 1;
  MUST(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  CHECK(dropped == 0);

  // The device's work, each of it once, and the call that it was done for.
  CHECK(kernels.size() == 6 && copies.size() == 1 && fills.size() == 1);
  const uint32_t first = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, true);
  const uint32_t second = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, true, 1);
  const uint32_t own = call_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, false);
  const uint32_t launch = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, true);
  const uint32_t copy = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, true);
  const uint32_t fill = call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, true);
  CHECK(of_call(kernels, first).name.find("increment") != std::string::npos);
  CHECK(of_call(kernels, first).bytes == 64);  // threads
  CHECK(of_call(kernels, second).name.find("twice") != std::string::npos);
  CHECK(of_call(kernels, own).name.find("twice") != std::string::npos);
  int nodes = 0;
  for (const work& w : kernels) nodes += w.call == launch;
  CHECK(nodes == 2);
  CHECK(of_call(copies, copy).bytes == 4 && of_call(copies, copy).from == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  CHECK(of_call(fills, fill).bytes == 64);

  // Who it is, in numbers that can be asked for.
  CUcontext context = nullptr;
  uint32_t number = 0;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuptiGetContextId(context, &number));
  for (const work& w : kernels) CHECK(w.context == number);
  MUST(cuptiGetStreamIdEx(context, side, 0, &number));
  CHECK(of_call(kernels, second).stream == number && of_call(kernels, own).stream == number);
  MUST(cuptiGetStreamIdEx(context, nullptr, 0, &number));
  CHECK(of_call(kernels, first).stream == number && of_call(copies, copy).stream == number);

  // When: after its call began, before the wait for it returned, in a row on a stream.
  const uint64_t slack = 20000;  // of two clocks, nanoseconds
  for (const std::vector<work>* all : {&kernels, &copies, &fills}) {
    for (const work& w : *all) {
      CHECK(calls.count(w.call) == 1);
      CHECK(w.begin <= w.end && w.begin + slack >= calls[w.call].begin);
      CHECK(w.begin + slack >= before && w.end <= after + slack);
    }
  }
  CHECK(of_call(copies, copy).end <= calls[copy].end + slack);
  CHECK(of_call(kernels, second).end <= of_call(kernels, own).begin + slack);
  CHECK(calls[call_of(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, true)].result == cudaErrorMemoryAllocation);

  // The program's own numbers: of each kind the last one pushed, where there was one.
  CHECK(external[first][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0] == 1002);
  CHECK(external[first][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1] == 2001);
  CHECK(external[copy][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0] == 1001);
  CHECK(external.count(second) == 0);
  bool waited = false;
  for (const auto& one : waits)
    waited = waited || one.first == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  CHECK(waited);

  // Nothing comes when nothing is wanted, and again when it is.
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER})
    MUST(cuptiActivityDisable(kind));
  MUST(cuptiActivityFlushAll(0));
  forget();
  increment<<<1, 1>>>(at, 1);
  MUST(cudaDeviceSynchronize());
  MUST(cuptiActivityFlushAll(0));
  CHECK(kernels.empty() && calls.empty());
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  for (int i = 0; i < 2000; ++i) increment<<<1, 1>>>(at, 1);
  MUST(cudaDeviceSynchronize());
  buffers = 0;
  MUST(cuptiActivityFlushAll(0));
  CHECK(kernels.size() == 2000);

  // Callbacks: both times of a call, with its arguments.
  CUpti_SubscriberHandle subscriber = nullptr, another = nullptr;
  MUST(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(called), &callbacks));
  CHECK(cuptiSubscribe(&another, reinterpret_cast<CUpti_CallbackFunc>(called), nullptr) ==
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                           CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                           CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020));
  increment<<<1, 1>>>(at, 1);
  MUST(cudaMemset(at, 3, 256));
  MUST(cudaDeviceSynchronize());
  CHECK(callbacks.size() == 4);
  CHECK(callbacks[0].name == "cudaLaunchKernel" && callbacks[0].enters && !callbacks[1].enters);
  CHECK(callbacks[0].symbol.find("increment") != std::string::npos);
  CHECK(callbacks[0].call == callbacks[1].call && callbacks[2].name == "cudaMemset");
  const char* name = nullptr;
  MUST(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &name));
  CHECK(std::strcmp(name, "cuLaunchKernel") == 0);
  MUST(cuptiUnsubscribe(subscriber));
  MUST(cudaMemset(at, 3, 256));
  CHECK(callbacks.size() == 4);
  MUST(cuptiFinalize());
  std::printf("PASS: %zu kernels told\n", kernels.size());
}
