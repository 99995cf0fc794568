// A program with a profiler of its own inside that looks at its memory: CUPTI's records of allocations and
// releases (kind MEMORY2), of whole lives (MEMORY) and of pools (MEMORY_POOL). It prints PASS. Natively the
// same.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "common.hh"

constexpr size_t size = 1 << 20;

struct made {
  uint32_t function = 0;
  bool runtime = false;
  uint64_t begin = 0, end = 0;
};

std::mutex mutex;
std::vector<CUpti_ActivityMemory4> seen;
std::vector<CUpti_ActivityMemory> lives;
std::vector<CUpti_ActivityMemoryPool3> pools;
std::map<uint32_t, made> calls;  // by correlation

void give(uint8_t** buffer, size_t* bytes, size_t* most) {
  *bytes = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
  *most = 0;
}

void take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2)
      seen.push_back(*reinterpret_cast<CUpti_ActivityMemory4*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY)
      lives.push_back(*reinterpret_cast<CUpti_ActivityMemory*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL)
      pools.push_back(*reinterpret_cast<CUpti_ActivityMemoryPool3*>(record));
    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
      const auto* c = reinterpret_cast<CUpti_ActivityAPI*>(record);
      calls[c->correlationId] = {c->cbid, c->kind == CUPTI_ACTIVITY_KIND_RUNTIME, c->start, c->end};
    }
  }
  std::free(buffer);
}

/// The one record of this operation at this address.
const CUpti_ActivityMemory4& of(void* address, CUpti_ActivityMemoryOperationType operation) {
  const CUpti_ActivityMemory4* found = nullptr;
  for (const CUpti_ActivityMemory4& m : seen) {
    if (m.address != reinterpret_cast<uint64_t>(address) || m.memoryOperationType != operation) continue;
    EXPECT(!found);
    found = &m;
  }
  EXPECT(found);
  return *found;
}

struct expected {
  const char* what;
  void* address;
  CUpti_ActivityMemoryKind kind;
  uint32_t allocated_by, released_by;  // the runtime's functions
  cudaStream_t stream;                 // null: no stream has a part in it
  size_t bytes = size;
};

void check(const expected& e, uint32_t stream) {
  const auto& allocation = of(e.address, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  const auto& release = of(e.address, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
  for (const auto* m : {&allocation, &release}) {
    EXPECT(m->memoryKind == e.kind && m->bytes == e.bytes && m->deviceId == 0);
    EXPECT(m->processId == static_cast<uint32_t>(getpid()));
    EXPECT((m->isAsync != 0) == (e.stream != nullptr));
    EXPECT(m->streamId == (e.stream ? stream : CUPTI_INVALID_STREAM_ID));
    EXPECT(calls.count(m->correlationId) == 1);
    const made& call = calls[m->correlationId];
    EXPECT(call.runtime && call.begin <= m->timestamp && m->timestamp <= call.end);
    EXPECT(call.function == (m == &allocation ? e.allocated_by : e.released_by));
  }
  EXPECT(allocation.timestamp < release.timestamp);
  const bool pool = allocation.memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  EXPECT(pool == (e.stream != nullptr));
}

/// The one record of a pool that a call of this function of the runtime has left.
const CUpti_ActivityMemoryPool3& pool_of(uint32_t function) {
  const CUpti_ActivityMemoryPool3* found = nullptr;
  for (const CUpti_ActivityMemoryPool3& p : pools) {
    if (calls.count(p.correlationId) == 0 || calls[p.correlationId].function != function) continue;
    EXPECT(!found);
    found = &p;
  }
  EXPECT(found);
  const made& call = calls[found->correlationId];
  EXPECT(call.runtime && call.begin <= found->timestamp && found->timestamp <= call.end);
  EXPECT(found->processId == static_cast<uint32_t>(getpid()) && found->deviceId == 0);
  EXPECT(found->memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
  return *found;
}

void pools_are_told_of(cudaStream_t side) {
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL));
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool = nullptr;
  void* block = nullptr;
  MUST(cudaMemPoolCreate(&pool, &wanted));
  MUST(cudaMallocFromPoolAsync(&block, size, pool, side));
  MUST(cudaFreeAsync(block, side));
  MUST(cudaStreamSynchronize(side));
  MUST(cudaMemPoolTrimTo(pool, 4096));
  MUST(cudaMemPoolDestroy(pool));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const auto& made = pool_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolCreate_v11020);
  const auto& trimmed = pool_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolTrimTo_v11020);
  const auto& gone = pool_of(CUPTI_RUNTIME_TRACE_CBID_cudaMemPoolDestroy_v11020);
  EXPECT(made.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
  EXPECT(trimmed.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
  EXPECT(gone.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
  EXPECT(trimmed.minBytesToKeep == 4096 || trimmed.minBytesToKeep == 0);  // NVIDIA's CUPTI 13.0 says 0
  EXPECT(made.address != 0 && made.address == trimmed.address && made.address == gone.address);
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY_POOL));
}

void lives_are_told_of() {
  MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY));
  uint64_t before = 0, after = 0;
  void* block = nullptr;
  MUST(cuptiGetTimestamp(&before));
  MUST(cudaMalloc(&block, size));
  MUST(cudaFree(block));
  MUST(cuptiGetTimestamp(&after));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(lives.size() == 1 && lives[0].address == reinterpret_cast<uint64_t>(block));
  EXPECT(lives[0].bytes == size && lives[0].memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT(before <= lives[0].start && lives[0].start < lives[0].end && lives[0].end <= after);
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY));
}

int main() {
  MUST(cuptiActivityRegisterCallbacks(give, take));
  MUST(cudaFree(nullptr));
  cudaStream_t side = nullptr;
  MUST(cudaStreamCreate(&side));
  void* early = nullptr;
  MUST(cudaMalloc(&early, size));
  for (const auto kind :
       {CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER})
    MUST(cuptiActivityEnable(kind));

  void *plain = nullptr, *pitched = nullptr, *pinned = nullptr, *managed = nullptr, *async = nullptr,
       *none = nullptr;
  size_t pitch = 0;
  MUST(cudaMalloc(&plain, size));
  MUST(cudaMallocPitch(&pitched, &pitch, 1000, 64));
  MUST(cudaHostAlloc(&pinned, size, cudaHostAllocDefault));
  MUST(cudaMallocManaged(&managed, size));
  MUST(cudaMallocAsync(&async, size, side));
  EXPECT(cudaMalloc(&none, size_t{1} << 60) == cudaErrorMemoryAllocation);
  (void)cudaGetLastError();
  CUdeviceptr own = 0;
  MUST(cuMemAlloc(&own, size));  // not by the runtime
  MUST(cudaFreeAsync(async, side));
  MUST(cudaStreamSynchronize(side));
  MUST(cudaFree(managed));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(pitched));
  MUST(cudaFree(plain));
  MUST(cuMemFree(own));
  MUST(cudaFree(nullptr));
  MUST(cudaFree(early));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));

  CUcontext context = nullptr;
  uint32_t stream = 0, number = 0;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuptiGetStreamIdEx(context, side, 0, &stream));
  MUST(cuptiGetContextId(context, &number));
  const std::vector<expected> known{
      {"plain", plain, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
       CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, nullptr},
      {"pitched", pitched, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_RUNTIME_TRACE_CBID_cudaMallocPitch_v3020,
       CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, nullptr, pitch * 64},
      {"pinned", pinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020,
       CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020, nullptr},
      {"managed", managed, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
       CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, nullptr},
      {"async", async, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_RUNTIME_TRACE_CBID_cudaMallocAsync_v11020,
       CUPTI_RUNTIME_TRACE_CBID_cudaFreeAsync_v11020, side}};
  for (const expected& e : known) {
    std::printf("%s\n", e.what);
    check(e, stream);
  }
  EXPECT(of(plain, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION).contextId == number);
  const auto& by_driver = of(reinterpret_cast<void*>(own), CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  EXPECT(!calls[by_driver.correlationId].runtime &&
         calls[by_driver.correlationId].function == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
  // Of what was there before, the release alone; of what failed and of nothing, no record.
  EXPECT(of(early, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE).bytes == size);
  EXPECT(seen.size() == 2 * known.size() + 3);

  seen.clear();
  MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY2));
  MUST(cudaMalloc(&plain, size));
  MUST(cudaFree(plain));
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT(seen.empty());
  pools_are_told_of(side);
  lives_are_told_of();
  return pass("memory_records");
}
