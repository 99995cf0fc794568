// More corners of the driver API (driver_corners.cc): green contexts, tensor maps, sparse arrays, which the
// cpu device refuses because it has none; the functions of CUDA 3.1 and before; cooperative launches on
// several devices.
#include <cuda.h>
#include <cudaProfiler.h>
#include <dlfcn.h>

#include <cstring>

#include "corners.hh"

namespace {

/// Features of GPUs that the cpu device refuses.
void green_contexts() {
  CUdevResource all{}, groups[2], rest{};
  const CUresult has = cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (has == CUDA_ERROR_NOT_SUPPORTED) return;
  MUST(has);
  EXPECT(all.type == CU_DEV_RESOURCE_TYPE_SM && all.sm.smCount > 0);
  CODE(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_INVALID));
  MUST(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned possible = 0, count = 2;
  MUST(cuDevSmResourceSplitByCount(nullptr, &possible, &all, nullptr, 0, 8));
  EXPECT(possible >= 2);
  MUST(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 8));
  EXPECT(count == 2 && groups[0].sm.smCount >= 8 && rest.type == CU_DEV_RESOURCE_TYPE_SM);
  EXPECT(groups[0].sm.smCount + groups[1].sm.smCount + rest.sm.smCount == all.sm.smCount);
  CODE(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(groups, &count, nullptr, nullptr, 0, 8));
  count = 1;
  CODE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
       cuDevSmResourceSplitByCount(groups, &count, &all, nullptr, 0, 100000));
  CUdevResource nothing{};
  CODE(CUDA_ERROR_INVALID_RESOURCE_TYPE,
       cuDevSmResourceSplitByCount(groups, &count, &nothing, nullptr, 0, 8));
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  CODE(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(nullptr, groups, 1));
  MUST(cuDevResourceGenerateDesc(&descriptor, groups, 1));
  CODE(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(nullptr, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM));
  MUST(cuGreenCtxCreate(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CUcontext made = nullptr, again = nullptr, current = nullptr;
  MUST(cuCtxFromGreenCtx(&made, green));
  MUST(cuCtxFromGreenCtx(&again, green));
  EXPECT(made && made == again && made != context);
  CUdevResource own{};
  MUST(cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(own.sm.smCount >= 8 && own.sm.smCount < all.sm.smCount);
  CUstream stream = nullptr, plain = nullptr;
  MUST(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  MUST(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CUstream refused = nullptr;
  CODE(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&refused, green, 0, 0));
  CUgreenCtx of = nullptr;
  MUST(cuStreamGetGreenCtx(stream, &of));
  EXPECT(of == green);
  MUST(cuStreamGetGreenCtx(plain, &of));
  EXPECT(of == nullptr);
  CUevent event = nullptr;
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuGreenCtxRecordEvent(green, event));
  MUST(cuGreenCtxWaitEvent(green, event));
  unsigned long long id = 0, id_of_context = 0;
  MUST(cuGreenCtxGetId(green, &id));
  MUST(cuCtxGetId(made, &id_of_context));
  EXPECT(id == id_of_context);
  // Memory made while it is current is its primary context's, and outlives it.
  MUST(cuCtxSetCurrent(made));
  MUST(cuCtxGetCurrent(&current));
  EXPECT(current == made);
  const CUdeviceptr memory = allocate(4096);
  MUST(cuMemsetD32Async(memory, 7, 4, stream));
  MUST(cuStreamSynchronize(stream));
  MUST(cuStreamDestroy(stream));
  MUST(cuCtxSetCurrent(context));
  MUST(cuGreenCtxDestroy(green));
  EXPECT(word_at(memory + 12) == 7);
  MUST(cuMemFree(memory));
  MUST(cuEventDestroy(event));
  MUST(cuStreamDestroy(plain));
}

void tensor_maps() {
  const cuuint64_t sizes[2] = {64, 32}, strides[1] = {256};
  const cuuint32_t box[2] = {32, 8}, steps[2] = {1, 1};
  const CUdeviceptr memory = allocate(1 << 16);
  CUtensorMap map;
  const CUresult has =
      cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(memory), sizes,
                             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (has != CUDA_ERROR_NOT_SUPPORTED) {
    MUST(has);
    if (computes) {  // the bytes begin with the address; the rest is the driver's secret
      CUdeviceptr inside = 0;
      std::memcpy(&inside, &map, sizeof inside);
      EXPECT(inside == memory);
      MUST(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(memory + 256)));
      std::memcpy(&inside, &map, sizeof inside);
      EXPECT(inside == memory + 256);
    }
    CODE(CUDA_ERROR_INVALID_VALUE,
         cuTensorMapEncodeTiled(nullptr, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(memory),
                                sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  }
  MUST(cuMemFree(memory));
}

void sparse_arrays() {
  CUstream stream = nullptr;
  CUarrayMapInfo none{};
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(nullptr, 1, stream));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&none, 0, stream));
  CODE(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&none, 1, stream));
  int sparse = 0;
  MUST(cuDeviceGetAttribute(&sparse, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, device));
  if (sparse && computes) {
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR about{4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
    CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
    MUST(cuArray3DCreate(&array, &about));
    MUST(cuArrayGetSparseProperties(&tiles, array));
    CUmemAllocationProp memory{};
    memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memory.location.id = device;
    memory.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    CUmemGenericAllocationHandle block = 0;
    MUST(cuMemCreate(&block, 2u << 20, &memory, 0));
    CUarrayMapInfo m{};
    m.resourceType = CU_RESOURCE_TYPE_ARRAY, m.resource.array = array;
    m.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    m.subresource.sparseLevel.extentWidth = tiles.tileExtent.width;
    m.subresource.sparseLevel.extentHeight = tiles.tileExtent.height;
    m.subresource.sparseLevel.extentDepth = 1;
    m.memOperationType = CU_MEM_OPERATION_TYPE_MAP, m.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    m.memHandle.memHandle = block, m.deviceBitMask = 1;
    MUST(cuMemMapArrayAsync(&m, 1, stream));
    MUST(cuStreamSynchronize(stream));
    float in = 3.5f, out = 0;
    MUST(cuMemcpyHtoA(array, 0, &in, sizeof in));
    MUST(cuMemcpyAtoH(&out, array, 0, sizeof out));
    EXPECT(out == in);
    m.deviceBitMask = 0;
    CODE(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&m, 1, stream));
    m.deviceBitMask = 1, m.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    MUST(cuMemMapArrayAsync(&m, 1, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuArrayDestroy(array));
    MUST(cuMemRelease(block));
  }
  MUST(cuStreamDestroy(stream));
}

/// The functions of CUDA 3.1 and before have addresses of 32 bits and work only in contexts of that version.
void first_versions() {
  const auto call = [](const char* name, auto... arguments) {
    auto* entry = reinterpret_cast<CUresult (*)(decltype(arguments)...)>(dlsym(RTLD_DEFAULT, name));
    EXPECT(entry != nullptr);
    return entry(arguments...);
  };
  unsigned address = 0, size = 0, word = 0;
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuMemAlloc", &address, 256u));
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuMemAllocPitch", &address, &size, 100u, 10u, 4u));
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuMemFree", 0u));
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuMemGetAddressRange", &address, &size, 0x1000u));
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuMemcpyHtoD", 0x1000u, static_cast<const void*>(&word), 4u));
  CUtexref reference = nullptr;
  if (cuTexRefCreate(&reference) != CUDA_SUCCESS) return;  // the cpu device has none
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuTexRefSetAddress", &size, reference, 0x1000u, 64u));
  CODE(CUDA_ERROR_INVALID_CONTEXT, call("cuTexRefGetAddress", &address, reference));
  if (computes) {
    CUarray array = nullptr, bound = nullptr;
    CUmipmappedArray pyramid = nullptr;
    CODE(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&bound, reference));
    CODE(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetArray(&bound, nullptr));
    CUDA_ARRAY_DESCRIPTOR about{16, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    MUST(cuArrayCreate(&array, &about));
    MUST(cuTexRefSetArray(reference, array, CU_TRSA_OVERRIDE_FORMAT));
    MUST(cuTexRefGetArray(&bound, reference));
    EXPECT(bound == array);
    CODE(CUDA_ERROR_INVALID_VALUE, cuTexRefGetMipmappedArray(&pyramid, reference));
    MUST(cuArrayDestroy(array));
  }
  MUST(cuTexRefDestroy(reference));
}

void cooperative_on_devices() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUstream stream = nullptr;
  MUST(cuModuleLoadData(&module, store_value));
  MUST(cuModuleGetFunction(&store, module, "store"));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr at = allocate(64);
  unsigned value = 9;
  void* arguments[] = {&at, &value};
  CUDA_LAUNCH_PARAMS launch{store, 1, 1, 1, 4, 1, 1, 0, stream, arguments};
  MUST(cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  MUST(cuStreamSynchronize(stream));
  EXPECT(!computes || word_at(at + 12) == 9);
  CODE(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 0, 0));
  CODE(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
  CODE(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 8));
  launch.hStream = nullptr;
  CODE(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  MUST(cuMemFree(at));
  MUST(cuStreamDestroy(stream));
  MUST(cuModuleUnload(module));
}

void odds_and_ends() {
  CUexecAffinityParam affinity{};
  MUST(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  int multiprocessors = 0, supported = 7;
  MUST(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  EXPECT(affinity.param.smCount.val == static_cast<unsigned>(multiprocessors));
  CODE(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
       cuCtxGetExecAffinity(&affinity, static_cast<CUexecAffinityType>(7)));
  MUST(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
  EXPECT(supported == 0);
  MUST(cuCtxResetPersistingL2Cache());
  const CUatomicOperation add = CU_ATOMIC_OPERATION_INTEGER_ADD;
  unsigned capability = 9;
  MUST(cuDeviceGetHostAtomicCapabilities(&capability, &add, 1, device));
  CODE(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(&capability, &add, 0, device));
  CODE(CUDA_ERROR_INVALID_HANDLE, cuDeviceGetNvSciSyncAttributes(nullptr, device, 1));
  CODE(CUDA_ERROR_NOT_SUPPORTED, cuProfilerInitialize(nullptr, nullptr, CU_OUT_CSV));
  const CUresult flushed = cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
  EXPECT(flushed == CUDA_SUCCESS || flushed == CUDA_ERROR_NOT_SUPPORTED);
  CUmemDecompressParams nothing{};
  std::size_t failed = 7;
  int algorithms = 0;
  MUST(cuDeviceGetAttribute(&algorithms, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, device));
  CODE(algorithms ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED,
       cuMemBatchDecompressAsync(nullptr, 1, 0, &failed, CU_STREAM_PER_THREAD));
  EXPECT(failed == (algorithms ? ~std::size_t{0} : 7));
  if (!computes) MUST(cuMemBatchDecompressAsync(&nothing, 1, 0, &failed, CU_STREAM_PER_THREAD));
  CUtensorMap map;
  CODE(CUDA_ERROR_INVALID_VALUE,
       cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 6, nullptr, nullptr, nullptr, nullptr,
                              nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

/// cuBLASLt calls into this table of the driver without checking that it exists.
void layout_of_the_board() {
  constexpr unsigned char bytes[16] = {0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45,
                                       0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca};
  CUuuid id;
  std::memcpy(&id, bytes, sizeof id);
  const void* found = nullptr;
  MUST(cuGetExportTable(&found, &id));
  const auto* words = static_cast<void* const*>(found);
  auto get = reinterpret_cast<CUresult (*)(unsigned char**, unsigned char**)>(words[4]);
  auto release = reinterpret_cast<CUresult (*)(unsigned char*, unsigned char*)>(words[13]);
  unsigned char *clusters = nullptr, *numbers = nullptr;
  const CUresult code = get(&clusters, &numbers);
  if (code == CUDA_ERROR_NOT_SUPPORTED) return;  // the cpu device has no board
  MUST(code);
  int multiprocessors = 0;
  MUST(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  unsigned sum = 0;
  for (int n = 0; n < multiprocessors / 2; ++n) sum = sum * 31 + clusters[n] * 256u + numbers[n];
  std::printf("CHECK layout of the board %u\n", sum);
  MUST(release(clusters, numbers));
  // Each place belongs to one pair.
  bool taken[256][256] = {};
  MUST(get(&clusters, &numbers));
  for (int n = 0; n < multiprocessors / 2; ++n) {
    EXPECT(!taken[clusters[n]][numbers[n]]);
    taken[clusters[n]][numbers[n]] = true;
  }
  MUST(release(clusters, numbers));
}

}  // namespace

int main(int count, char** values) {
  begin(count, values);
  green_contexts();
  tensor_maps();
  sparse_arrays();
  first_versions();
  cooperative_on_devices();
  odds_and_ends();
  layout_of_the_board();
  return pass("gpu_corners");
}
