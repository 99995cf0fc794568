// A program of CUDA 12.8 with a profiler inside (compiled against its headers, run with its runtime and
// CUPTI): records have the sizes that its structs have, one behind the other, and say what happened. It
// prints PASS. Natively the same.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "common.hh"

static const char* text = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 data) {
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  cvta.to.global.u64 %d2, %d1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.u64 %d3, %d2, %d3;
  ld.global.u32 %r2, [%d3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%d3], %r2;
  ret;
})";

static std::map<int, std::vector<std::vector<std::uint8_t>>> records;  // by kind, with the mutex
static std::mutex mutex;                                               // CUPTI's thread takes some

static std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    default:
      std::printf("FAIL profiler12: a record of kind %d\n", static_cast<int>(kind));
      std::exit(1);
  }
}

static void give(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 64 << 10;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

/// Records lie one behind the other: what is between two of them, or behind the last, is one record.
static void take(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::size_t at = 0;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    EXPECT(reinterpret_cast<std::uint8_t*>(record) == buffer + at);
    const std::size_t size = size_of(record->kind);
    EXPECT(at + size <= valid);
    records[record->kind].emplace_back(buffer + at, buffer + at + size);
    at += size;
  }
  EXPECT(at == valid);
  std::free(buffer);
}

template <class Record>
static std::vector<Record> all(CUpti_ActivityKind kind) {
  std::vector<Record> of_kind;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& bytes : records[kind]) std::memcpy(&of_kind.emplace_back(), bytes.data(), sizeof(Record));
  return of_kind;
}

int main() {
  std::uint32_t version = 0;
  MUST(cuptiGetVersion(&version));
  EXPECT(version == CUPTI_API_VERSION);
  MUST(cuptiActivityRegisterCallbacks(give, take));
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_OVERHEAD})
    if (const CUptiResult code = cuptiActivityEnable(kind); code != CUPTI_SUCCESS) {
      std::printf("FAIL profiler12: cuptiActivityEnable(%d) gave %d\n", static_cast<int>(kind),
                  static_cast<int>(code));
      return 1;
    }

  unsigned host[256] = {}, *data = nullptr;
  MUST(cudaMalloc(reinterpret_cast<void**>(&data), sizeof host));
  MUST(cudaMemset(data, 0, sizeof host));
  cudaLibrary_t library;
  cudaKernel_t add_one;
  MUST(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cudaLibraryGetKernel(&add_one, library, "add_one"));
  cudaEvent_t event;
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  void* parameters[] = {&data};
  MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 4711));
  for (int i = 0; i < 10; ++i) MUST(cudaLaunchKernel(add_one, dim3(1), dim3(256), parameters, 0, nullptr));
  std::uint64_t popped = 0;
  MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped));
  EXPECT(popped == 4711);
  MUST(cudaEventRecord(event, nullptr));
  MUST(cudaEventSynchronize(event));
  MUST(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (const unsigned value : host) EXPECT(value == 10);
  MUST(cudaFree(data));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));

  // The runtime asks for its functions by the hundred before the driver's start: nobody wants to see that.
  for (const auto& c : all<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER)) {
    EXPECT(c.cbid != CUPTI_DRIVER_TRACE_CBID_cuInit);
    EXPECT(c.cbid != CUPTI_DRIVER_TRACE_CBID_cuGetProcAddress_v2);
  }
  std::map<std::uint32_t, std::uint32_t> calls;  // what was called, by correlation
  for (const auto& c : all<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME)) {
    EXPECT(c.start <= c.end && c.processId == static_cast<std::uint32_t>(getpid()) && c.returnValue == 0);
    calls[c.correlationId] = c.cbid;
  }
  const auto kernels = all<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT(kernels.size() == 10);
  for (const auto& k : kernels) {
    EXPECT(std::string(k.name) == "add_one" && k.gridX == 1 && k.blockX == 256 && k.start < k.end);
    EXPECT(calls[k.correlationId] == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
  }
  const auto external = all<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  EXPECT(external.size() >= 10 && external.front().externalId == 4711);
  const auto copies = all<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT(copies.size() == 1 && copies[0].bytes == sizeof host && copies[0].copyCount <= 1);
  EXPECT(copies[0].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  const auto fills = all<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  EXPECT(fills.size() == 1 && fills[0].bytes == sizeof host && fills[0].value == 0);
  bool waited = false;
  for (const auto& w : all<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    waited = waited || w.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    EXPECT(w.returnValue == 0 && w.start <= w.end);
  }
  EXPECT(waited && all<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT).size() == 1);
  EXPECT(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CUDA_EVENT) == CUPTI_ERROR_INVALID_KIND);
  int allocations = 0, releases = 0;
  for (const auto& m : all<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2)) {
    if (m.address != reinterpret_cast<std::uint64_t>(data)) continue;
    EXPECT(m.bytes == sizeof host);
    (m.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? allocations : releases) += 1;
  }
  EXPECT(allocations == 1 && releases == 1);
  EXPECT(!all<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD).empty());
  EXPECT(!all<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE).empty());
  return pass("profiler12");
}
