// A program with a profiler of its own inside that looks at the program's ranges, marks and names (NVTX):
// CUPTI's records of markers, their data and names, and callbacks of NVTX's functions. It prints PASS.
// Natively the same: NVTX is told to load whichever libcupti the program has.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <generated_nvtx_meta.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common.hh"

struct marker {
  std::string name, domain;
  uint64_t begin = 0, end = 0;
  uint32_t thread = 0;
  int begins = 0, ends = 0, marks = 0;
};

std::mutex mutex;
std::map<uint32_t, marker> markers;  // by id
std::map<uint32_t, CUpti_ActivityMarkerData2> data;
std::map<int, std::vector<std::pair<uint32_t, std::string>>>
    names;  // by kind of object: its number, its name
uint64_t kernel_begin = 0, kernel_end = 0;

void give(uint8_t** buffer, size_t* size, size_t* most) {
  *size = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void take_marker(const CUpti_ActivityMarker2& m) {
  marker& known = markers[m.id];
  if (m.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) {
    EXPECT(m.objectId.pt.processId == static_cast<uint32_t>(getpid()));
    known.thread = m.objectId.pt.threadId;
  }
  if (m.domain) known.domain = m.domain;
  if (m.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
    EXPECT(!m.name);
    known.end = m.timestamp, ++known.ends;
    return;
  }
  known.name = m.name ? m.name : "";
  known.begin = m.timestamp;
  ++(m.flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS ? known.marks : known.begins);
}

void take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_MARKER)
      take_marker(*reinterpret_cast<CUpti_ActivityMarker2*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_MARKER_DATA) {
      const auto* d = reinterpret_cast<CUpti_ActivityMarkerData2*>(record);
      data[d->id] = *d;
    }
    if (record->kind == CUPTI_ACTIVITY_KIND_NAME) {
      const auto* n = reinterpret_cast<CUpti_ActivityName*>(record);
      const bool thread = n->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD;
      const bool stream = n->objectKind == CUPTI_ACTIVITY_OBJECT_STREAM;
      const uint32_t number = thread   ? n->objectId.pt.threadId
                              : stream ? n->objectId.dcs.streamId
                                       : n->objectId.dcs.deviceId;
      names[n->objectKind].emplace_back(number, n->name);
    }
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(record);
      kernel_begin = k->start, kernel_end = k->end;
    }
  }
  std::free(buffer);
}

std::vector<std::string> called;
std::string pushed;

void CUPTIAPI told(void* own, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* about) {
  EXPECT(own == &called);
  if (domain != CUPTI_CB_DOMAIN_NVTX) return;
  const auto* c = static_cast<const CUpti_NvtxData*>(about);
  const char* name = nullptr;
  EXPECT(cuptiGetCallbackName(domain, id, &name) == CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT(std::strncmp(c->functionName, "nvtx", 4) == 0);
  called.push_back(c->functionName);
  if (id == CUPTI_CBID_NVTX_nvtxRangePushA)
    pushed = static_cast<const nvtxRangePushA_params*>(c->functionParams)->message;
  if (id == CUPTI_CBID_NVTX_nvtxDomainMarkEx)
    EXPECT(static_cast<const nvtxDomainMarkEx_params*>(c->functionParams)->core.eventAttrib->category == 5);
}

const marker& named(const char* name) {
  for (const auto& one : markers)
    if (one.second.name == name) return one.second;
  std::printf("FAIL: no marker %s\n", name);
  std::exit(1);
}
const CUpti_ActivityMarkerData2& data_of(const char* name) {
  for (const auto& one : markers)
    if (one.second.name == name && data.count(one.first)) return data[one.first];
  std::printf("FAIL: no data of %s\n", name);
  std::exit(1);
}

nvtxEventAttributes_t event(const char* text) {
  nvtxEventAttributes_t e{};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = text;
  return e;
}

__global__ void increment(int* at) { *at += 1; }

int main() {
  Dl_info here{};
  EXPECT(dladdr(reinterpret_cast<void*>(&cuptiGetVersion), &here) != 0);
  MUST(setenv("NVTX_INJECTION64_PATH", here.dli_fname, 1));
  MUST(cuptiActivityRegisterCallbacks(give, take));
  for (const auto kind : {CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER_DATA,
                          CUPTI_ACTIVITY_KIND_NAME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL})
    MUST(cuptiActivityEnable(kind));
  CUpti_SubscriberHandle subscriber = nullptr;
  MUST(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(told), &called));
  MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_NVTX));

  int* at = nullptr;
  MUST(cudaMalloc(&at, 256));
  MUST(cudaMemset(at, 0, 256));
  cudaStream_t side = nullptr;
  MUST(cudaStreamCreate(&side));
  nvtxNameCudaStreamA(side, "the side one");
  nvtxNameCudaDeviceA(0, "the first device");
  nvtxNameOsThreadA(4711, "a thread");

  nvtxRangePushA("outer");
  nvtxEventAttributes_t e = event("inner");
  e.colorType = NVTX_COLOR_ARGB;
  e.color = 0xff102030;
  e.category = 5;
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  e.payload.ullValue = 1ull << 40;
  nvtxRangePushEx(&e);
  increment<<<1, 1, 0, side>>>(at);
  MUST(cudaStreamSynchronize(side));
  nvtxRangePop();
  nvtxRangePop();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
  e = event("residual");
  e.category = 5;
  e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  e.payload.dValue = 0.5;
  nvtxDomainMarkEx(domain, &e);
  nvtxRangeId_t across = 0;
  std::thread([&] { across = nvtxRangeStartA("across"); }).join();
  nvtxRangeEnd(across);

  MUST(cudaDeviceSynchronize());
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const marker &outer = named("outer"), &inner = named("inner"), &mark = named("residual");
    EXPECT(markers.size() == 4);
    EXPECT(outer.begins == 1 && outer.ends == 1 && inner.begins == 1 && inner.ends == 1);
    EXPECT(outer.begin <= inner.begin && inner.end <= outer.end);
    EXPECT(outer.thread == inner.thread && outer.domain.empty());
    // The kernel was done while its range was open: one clock for both.
    const uint64_t slack = 20000;  // nanoseconds
    EXPECT(kernel_begin + slack >= inner.begin && kernel_end <= inner.end + slack);
    EXPECT(mark.marks == 1 && mark.domain == "solver" && mark.begin >= outer.end);
    EXPECT(named("across").begins == 1 && named("across").ends == 1);
    EXPECT(data_of("inner").color == 0xff102030 &&
           (data_of("inner").flags & CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB));
    EXPECT(data_of("inner").category == 5);
    EXPECT(data_of("inner").payloadKind == CUPTI_METRIC_VALUE_KIND_UINT64 &&
           data_of("inner").payload.metricValueUint64 == 1ull << 40);
    EXPECT(data_of("residual").payloadKind == CUPTI_METRIC_VALUE_KIND_DOUBLE &&
           data_of("residual").payload.metricValueDouble == 0.5);
    EXPECT(!(data_of("residual").flags & CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB));
    CUcontext context = nullptr;
    uint32_t stream = 0;
    MUST(cuCtxGetCurrent(&context));
    MUST(cuptiGetStreamIdEx(context, side, 0, &stream));
    const auto is = [](CUpti_ActivityObjectKind kind, uint32_t number, const char* name) {
      for (const auto& one : names[kind])
        if (one.first == number && one.second == name) return true;
      return false;
    };
    EXPECT(is(CUPTI_ACTIVITY_OBJECT_STREAM, stream, "the side one"));
    EXPECT(is(CUPTI_ACTIVITY_OBJECT_DEVICE, 0, "the first device"));
    EXPECT(is(CUPTI_ACTIVITY_OBJECT_THREAD, 4711, "a thread"));
    markers.clear();
  }
  const auto times = [](const char* name) {
    int count = 0;
    for (const std::string& one : called) count += one == name;
    return count;
  };
  EXPECT(times("nvtxRangePushA") == 1 && times("nvtxRangePushEx") == 1 && times("nvtxRangePop") == 2);
  EXPECT(times("nvtxDomainMarkEx") == 1 && times("nvtxRangeStartA") == 1 && times("nvtxRangeEnd") == 1);
  EXPECT(pushed == "outer");

  // Nothing comes when nobody wants it; pops of what began unseen are nobody's.
  MUST(cuptiUnsubscribe(subscriber));
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MARKER));
  const size_t before = called.size();
  nvtxRangePushA("unseen");
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(called.size() == before && markers.empty());
  nvtxRangePop();
  return pass("nvtx_records");
}
