// Compares wrong calls of the CUDA runtime, linked statically as nvcc does, with the codes that it returns on
// a real driver (recorded_runtime.txt); see harness.hh. After each call come cudaGetLastError, twice, and
// cudaDeviceSynchronize.
#include "harness.hh"

namespace wrong_calls {
namespace {

const state fresh{"fresh", true, false};     ///< no call has been made
const state shared{"shared", false, false};  ///< memory, streams and events exist
const state alone{"alone", true, false};     ///< the same, in a process of its own
const state trapped{"trapped", true, false};
const state wild{"wild", true, false};
const state reset{"reset", true, false};
const state forked{"forked", false, true};

__device__ int number;
__constant__ int constant;
__managed__ int managed_number;

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }
__global__ void __launch_bounds__(64) few(int* data) { data[threadIdx.x] = 1; }
__global__ void trap() { asm volatile("trap;"); }
__global__ void write_wild() { *reinterpret_cast<volatile int*>(64) = 1; }
__global__ void misaligned(char* data) { *reinterpret_cast<volatile int*>(data + 1) = 1; }
__global__ void shared_40k(int* data) {
  __shared__ int all[10240];
  all[threadIdx.x] = data[0];
  __syncthreads();
  data[0] = all[blockDim.x - 1 - threadIdx.x];
}
void not_a_kernel() {}

struct objects {
  int* memory = nullptr;
  void* pinned = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaArray_t array = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
} w;
alignas(4096) char host[65536];

struct outputs {
  int i = 0;
  unsigned u = 0;
  std::size_t n = 0, n2 = 0;
  float f = 0;
  void* p = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaArray_t array = nullptr;
  cudaDeviceProp properties;
  cudaPointerAttributes about;
  cudaFuncAttributes function;
} o;

void* const nowhere = reinterpret_cast<void*>(0x6000000000000ull);
int* block(std::size_t bytes) {
  void* p = nullptr;
  NEED(cudaMalloc(&p, bytes));
  return static_cast<int*>(p);
}
cudaError_t begin() { return cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeGlobal); }
/// Returns the code of a call while the stream captures, plus 1000 times the code of the capture's end.
template <class Call>
int captured(Call call) {
  NEED(begin());
  const int code = call();
  return code + 1000 * cudaStreamEndCapture(w.stream, &o.graph);
}

#define WRONG(name, where, ...)                       \
  {                                                   \
    name, &where, []() -> int { return __VA_ARGS__; } \
  }
#define WRONG_DO(name, where, ...) \
  { name, &where, []() -> int __VA_ARGS__ }

std::vector<wrong_call> simple_calls() {
  return {
      WRONG("cudaGetLastError.fresh", fresh, cudaGetLastError()),
      WRONG("cudaGetDevice.null", shared, cudaGetDevice(nullptr)),
      WRONG("cudaGetDeviceCount.null", fresh, cudaGetDeviceCount(nullptr)),
      WRONG("cudaSetDevice.negative", fresh, cudaSetDevice(-1)),
      WRONG("cudaSetDevice.too_many", shared, cudaSetDevice(1000)),
      WRONG("cudaGetDeviceProperties.null", shared, cudaGetDeviceProperties(nullptr, 0)),
      WRONG("cudaGetDeviceProperties.device", shared, cudaGetDeviceProperties(&o.properties, 1000)),
      WRONG("cudaDeviceGetAttribute.unknown", shared,
            cudaDeviceGetAttribute(&o.i, static_cast<cudaDeviceAttr>(9999), 0)),
      WRONG("cudaDeviceGetAttribute.device", shared, cudaDeviceGetAttribute(&o.i, cudaDevAttrWarpSize, 77)),
      WRONG("cudaDeviceGetAttribute.null", shared, cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0)),
      WRONG("cudaDeviceSetLimit.unknown", shared, cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1)),
      WRONG("cudaDeviceGetLimit.null", shared, cudaDeviceGetLimit(nullptr, cudaLimitStackSize)),
      WRONG("cudaDeviceGetLimit.unknown", shared, cudaDeviceGetLimit(&o.n, static_cast<cudaLimit>(99))),
      WRONG("cudaDeviceSetCacheConfig.unknown", shared,
            cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(99))),
      WRONG("cudaSetDeviceFlags.unknown", shared, cudaSetDeviceFlags(0x1000)),
      WRONG("cudaGetDeviceFlags.null", shared, cudaGetDeviceFlags(nullptr)),
      WRONG("cudaDeviceGetByPCIBusId.nonsense", shared, cudaDeviceGetByPCIBusId(&o.i, "nonsense")),
      WRONG("cudaDeviceGetPCIBusId.no_room", shared, cudaDeviceGetPCIBusId(host, 3, 0)),
      WRONG("cudaDeviceCanAccessPeer.device", shared, cudaDeviceCanAccessPeer(&o.i, 0, 99)),
      WRONG("cudaDeviceEnablePeerAccess.itself", shared, cudaDeviceEnablePeerAccess(0, 0)),
      WRONG("cudaDeviceDisablePeerAccess.not_enabled", shared, cudaDeviceDisablePeerAccess(0)),
      WRONG("cudaDeviceGetDefaultMemPool.null", shared, cudaDeviceGetDefaultMemPool(nullptr, 0)),
      WRONG("cudaInitDevice.device", shared, cudaInitDevice(99, 0, 0)),
      WRONG("cudaInitDevice.flags", shared, cudaInitDevice(0, 0, 0x100)),
      WRONG("cudaChooseDevice.null", shared, cudaChooseDevice(nullptr, nullptr)),
      WRONG("cudaDriverGetVersion.null", shared, cudaDriverGetVersion(nullptr)),
      WRONG("cudaRuntimeGetVersion.null", shared, cudaRuntimeGetVersion(nullptr)),
      // memory
      WRONG("cudaMalloc.null", shared, cudaMalloc(static_cast<void**>(nullptr), 64)),
      WRONG("cudaMalloc.zero", shared, cudaMalloc(&o.p, 0)),
      WRONG("cudaMalloc.huge", shared, cudaMalloc(&o.p, std::size_t{1} << 50)),
      WRONG("cudaMallocHost.huge", shared, cudaMallocHost(&o.p, std::size_t{1} << 50)),
      WRONG("cudaMallocHost.null", shared, cudaMallocHost(static_cast<void**>(nullptr), 64)),
      WRONG("cudaMallocManaged.flags", shared, cudaMallocManaged(&o.p, 64, 0x40)),
      WRONG("cudaMallocManaged.zero", shared, cudaMallocManaged(&o.p, 0)),
      WRONG("cudaMallocPitch.null", shared, cudaMallocPitch(static_cast<void**>(nullptr), &o.n, 64, 4)),
      WRONG("cudaMallocAsync.null", shared, cudaMallocAsync(static_cast<void**>(nullptr), 64, w.stream)),
      WRONG("cudaMallocAsync.huge", shared, cudaMallocAsync(&o.p, std::size_t{1} << 50, w.stream)),
      WRONG("cudaMalloc3D.negative", shared, cudaMalloc3D(nullptr, make_cudaExtent(64, 4, 4))),
      WRONG("cudaFree.inside", shared, cudaFree(w.memory + 1024)),
      WRONG("cudaFree.host", shared, cudaFree(host)),
      WRONG("cudaFree.pinned", shared, cudaFree(w.pinned)),
      WRONG_DO("cudaFree.twice", shared,
               {
                 void* p = block(1 << 20);
                 NEED(cudaFree(p));
                 return cudaFree(p);
               }),
      WRONG("cudaFreeHost.pageable", shared, cudaFreeHost(host)),
      WRONG("cudaFreeHost.device", shared, cudaFreeHost(w.memory)),
      WRONG("cudaFreeAsync.nowhere", shared, cudaFreeAsync(nowhere, w.stream)),
      WRONG("cudaFreeArray.null", shared, cudaFreeArray(nullptr)),
      WRONG("cudaHostAlloc.flags", shared, cudaHostAlloc(&o.p, 64, 0x80)),
      WRONG("cudaHostRegister.null", shared, cudaHostRegister(nullptr, 4096, 0)),
      WRONG("cudaHostRegister.flags", shared, cudaHostRegister(host, 4096, 0x800)),
      WRONG_DO("cudaHostRegister.twice", shared,
               {
                 NEED(cudaHostRegister(host, 4096, 0));
                 const int code = cudaHostRegister(host, 4096, 0);
                 NEED(cudaHostUnregister(host));
                 return code;
               }),
      WRONG("cudaHostUnregister.never", shared, cudaHostUnregister(host)),
      WRONG("cudaHostGetDevicePointer.pageable", shared, cudaHostGetDevicePointer(&o.p, host, 0)),
      WRONG("cudaHostGetFlags.pageable", shared, cudaHostGetFlags(&o.u, host)),
      WRONG("cudaMemGetInfo.null", shared, cudaMemGetInfo(nullptr, nullptr)),
      WRONG("cudaPointerGetAttributes.null", shared, cudaPointerGetAttributes(nullptr, w.memory)),
      WRONG("cudaPointerGetAttributes.pageable", shared, cudaPointerGetAttributes(&o.about, host)),
      WRONG("cudaPointerGetAttributes.nowhere", shared, cudaPointerGetAttributes(&o.about, nowhere)),
      // copies
      WRONG("cudaMemcpy.kind", shared, cudaMemcpy(w.memory, host, 64, static_cast<cudaMemcpyKind>(9))),
      WRONG("cudaMemcpy.to_host_not_host", shared, cudaMemcpy(w.memory, host, 64, cudaMemcpyDeviceToHost)),
      WRONG("cudaMemcpy.to_device_not_device", shared,
            cudaMemcpy(host, w.memory, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy.device_to_device_of_host", shared,
            cudaMemcpy(w.memory, host, 64, cudaMemcpyDeviceToDevice)),
      WRONG("cudaMemcpy.host_to_host_of_device", shared,
            cudaMemcpy(host, w.memory, 64, cudaMemcpyHostToHost)),
      WRONG("cudaMemcpy.null_target", shared, cudaMemcpy(nullptr, host, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy.null_source", shared, cudaMemcpy(w.memory, nullptr, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy.null_nothing", shared, cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy.nowhere", shared, cudaMemcpy(nowhere, host, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy.default_nowhere", shared, cudaMemcpy(nowhere, host, 64, cudaMemcpyDefault)),
      WRONG("cudaMemcpy.over_the_end", shared,
            cudaMemcpy(block(8 << 20) + (2 << 20) - 16, host, 4096, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpyAsync.kind", shared,
            cudaMemcpyAsync(w.memory, host, 64, static_cast<cudaMemcpyKind>(9), w.stream)),
      WRONG("cudaMemcpyAsync.nowhere", shared,
            cudaMemcpyAsync(nowhere, host, 64, cudaMemcpyHostToDevice, w.stream)),
      WRONG("cudaMemcpyAsync.to_host_not_host", shared,
            cudaMemcpyAsync(w.memory, host, 64, cudaMemcpyDeviceToHost, w.stream)),
      WRONG("cudaMemcpy2D.pitch", shared,
            cudaMemcpy2D(w.memory, 32, host, 64, 64, 4, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy2D.source_pitch", shared,
            cudaMemcpy2D(w.memory, 64, host, 32, 64, 4, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy2D.kind", shared,
            cudaMemcpy2D(w.memory, 64, host, 64, 64, 4, static_cast<cudaMemcpyKind>(9))),
      WRONG("cudaMemcpy3D.null", shared, cudaMemcpy3D(nullptr)),
      WRONG_DO("cudaMemcpy3D.nothing_set", shared,
               {
                 cudaMemcpy3DParms p{};
                 return cudaMemcpy3D(&p);
               }),
      WRONG("cudaMemcpy2DToArray.null", shared,
            cudaMemcpy2DToArray(nullptr, 0, 0, host, 64, 64, 4, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy2DToArray.height", shared,
            cudaMemcpy2DToArray(w.array, 0, 0, host, 256, 256, 100, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpy2DFromArray.width", shared,
            cudaMemcpy2DFromArray(host, 512, w.array, 0, 0, 512, 4, cudaMemcpyDeviceToHost)),
      WRONG("cudaMemcpyToSymbol.not_a_symbol", shared,
            cudaMemcpyToSymbol(static_cast<const void*>(host), host, 4, 0, cudaMemcpyHostToDevice)),
      WRONG("cudaMemcpyToSymbol.too_long", shared, cudaMemcpyToSymbol(number, host, 64)),
      WRONG("cudaMemcpyToSymbol.managed_too_long", shared, cudaMemcpyToSymbol(managed_number, host, 64)),
      WRONG("cudaMemcpyToSymbol.offset", shared, cudaMemcpyToSymbol(number, host, 4, 4)),
      WRONG("cudaMemcpyToSymbol.kind", shared,
            cudaMemcpyToSymbol(number, host, 4, 0, cudaMemcpyDeviceToHost)),
      WRONG("cudaMemcpyFromSymbol.too_long", shared, cudaMemcpyFromSymbol(host, constant, 64)),
      WRONG("cudaMemcpyFromSymbol.kind", shared,
            cudaMemcpyFromSymbol(host, number, 4, 0, cudaMemcpyHostToDevice)),
      WRONG("cudaGetSymbolAddress.not_a_symbol", shared,
            cudaGetSymbolAddress(&o.p, static_cast<const void*>(host))),
      WRONG("cudaGetSymbolSize.not_a_symbol", shared,
            cudaGetSymbolSize(&o.n, static_cast<const void*>(host))),
      WRONG("cudaGetSymbolAddress.null", shared, cudaGetSymbolAddress(nullptr, number)),
      WRONG("cudaMemset.null", shared, cudaMemset(nullptr, 0, 64)),
      WRONG("cudaMemset.nowhere", shared, cudaMemset(nowhere, 0, 64)),
      WRONG("cudaMemset.pageable", shared, cudaMemset(host, 0, 64)),
      WRONG("cudaMemset.over_the_end", shared, cudaMemset(w.memory, 0, 1 << 30)),
      WRONG("cudaMemset2D.pitch", shared, cudaMemset2D(w.memory, 32, 0, 64, 4)),
      WRONG("cudaMemsetAsync.nowhere", shared, cudaMemsetAsync(nowhere, 0, 64, w.stream)),
      WRONG("cudaMemAdvise.not_managed", shared,
            cudaMemAdvise(w.memory, 64, cudaMemAdviseSetReadMostly,
                          cudaMemLocation{cudaMemLocationTypeDevice, 0})),
      WRONG("cudaMemPrefetchAsync.not_managed", shared,
            cudaMemPrefetchAsync(w.memory, 64, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, w.stream)),
      WRONG("cudaMallocArray.null", shared, cudaMallocArray(nullptr, nullptr, 8, 8)),
      WRONG_DO("cudaMallocArray.channels", shared,
               {
                 const auto d = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
                 return cudaMallocArray(&o.array, &d, 8, 8);
               }),
      WRONG_DO("cudaMallocArray.bits", shared,
               {
                 const auto d = cudaCreateChannelDesc(13, 0, 0, 0, cudaChannelFormatKindFloat);
                 return cudaMallocArray(&o.array, &d, 8, 8);
               }),
      WRONG_DO("cudaMallocArray.huge", shared,
               {
                 const auto d = cudaCreateChannelDesc<float>();
                 return cudaMallocArray(&o.array, &d, 1 << 20, 8);
               }),
      WRONG("cudaArrayGetInfo.null", shared, cudaArrayGetInfo(nullptr, nullptr, nullptr, nullptr)),
      WRONG("cudaDestroyTextureObject.unknown", shared, cudaDestroyTextureObject(0x123456)),
      WRONG_DO("cudaCreateTextureObject.null", shared,
               {
                 cudaTextureObject_t t = 0;
                 return cudaCreateTextureObject(&t, nullptr, nullptr, nullptr);
               }),
      WRONG_DO("cudaCreateTextureObject.linear_normalised", shared,
               {
                 cudaTextureObject_t t = 0;
                 cudaResourceDesc r{};
                 r.resType = cudaResourceTypeLinear, r.res.linear.devPtr = w.memory,
                 r.res.linear.sizeInBytes = 64;
                 r.res.linear.desc = cudaCreateChannelDesc<int>();
                 cudaTextureDesc d{};
                 d.readMode = cudaReadModeNormalizedFloat;
                 return cudaCreateTextureObject(&t, &r, &d, nullptr);
               }),
  };
}

std::vector<wrong_call> ordered_calls() {
  return {
      // streams, events, graphs
      WRONG("cudaStreamCreate.null", shared, cudaStreamCreate(nullptr)),
      WRONG("cudaStreamCreateWithFlags.flags", shared, cudaStreamCreateWithFlags(&o.stream, 0x100)),
      WRONG("cudaStreamDestroy.null", shared, cudaStreamDestroy(nullptr)),
      WRONG("cudaStreamWaitEvent.null", shared, cudaStreamWaitEvent(w.stream, nullptr)),
      WRONG("cudaStreamWaitEvent.flags", shared, cudaStreamWaitEvent(w.stream, w.event, 8)),
      WRONG("cudaStreamAddCallback.null", shared, cudaStreamAddCallback(w.stream, nullptr, nullptr, 0)),
      WRONG("cudaLaunchHostFunc.null", shared, cudaLaunchHostFunc(w.stream, nullptr, nullptr)),
      WRONG("cudaStreamEndCapture.not_capturing", shared, cudaStreamEndCapture(w.stream, &o.graph)),
      WRONG("cudaStreamBeginCapture.default", shared,
            cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal)),
      WRONG("cudaStreamBeginCapture.mode", shared,
            cudaStreamBeginCapture(w.stream, static_cast<cudaStreamCaptureMode>(9))),
      WRONG("cudaStreamSynchronize.destroyed", alone,
            [] {
              NEED(cudaStreamCreate(&o.stream));
              NEED(cudaStreamDestroy(o.stream));
              return cudaStreamSynchronize(o.stream);
            }()),
      WRONG("cudaEventCreate.null", shared, cudaEventCreate(static_cast<cudaEvent_t*>(nullptr))),
      WRONG("cudaEventCreateWithFlags.flags", shared, cudaEventCreateWithFlags(&o.event, 0x100)),
      WRONG("cudaEventRecord.null", shared, cudaEventRecord(nullptr, w.stream)),
      WRONG("cudaEventDestroy.null", shared, cudaEventDestroy(nullptr)),
      WRONG("cudaEventSynchronize.null", shared, cudaEventSynchronize(nullptr)),
      WRONG_DO("cudaEventElapsedTime.never_recorded", shared,
               {
                 cudaEvent_t a, b;
                 NEED(cudaEventCreate(&a));
                 NEED(cudaEventCreate(&b));
                 return cudaEventElapsedTime(&o.f, a, b);
               }),
      WRONG("cudaGraphCreate.flags", shared, cudaGraphCreate(&o.graph, 1)),
      WRONG("cudaGraphInstantiate.null", shared, cudaGraphInstantiate(&o.exec, nullptr, 0)),
      WRONG("cudaGraphLaunch.null", shared, cudaGraphLaunch(nullptr, w.stream)),
      WRONG("cudaGraphDestroy.null", shared, cudaGraphDestroy(nullptr)),
      WRONG("cudaGraphExecDestroy.null", shared, cudaGraphExecDestroy(nullptr)),
      WRONG_DO("cudaGraphAddKernelNode.not_a_kernel", shared,
               {
                 cudaKernelNodeParams p{};
                 p.func = reinterpret_cast<void*>(not_a_kernel), p.gridDim = p.blockDim = dim3(1);
                 return cudaGraphAddKernelNode(&o.node, w.graph, nullptr, 0, &p);
               }),
      WRONG_DO("cudaGraphAddKernelNode.threads", shared,
               {
                 int *data = w.memory, value = 1;
                 void* parameters[] = {&data, &value};
                 cudaKernelNodeParams p{};
                 p.func = reinterpret_cast<void*>(fill), p.gridDim = dim3(1), p.blockDim = dim3(4096);
                 p.kernelParams = parameters;
                 return cudaGraphAddKernelNode(&o.node, w.graph, nullptr, 0, &p);
               }),
      WRONG("cudaGraphAddMemcpyNode1D.null", shared,
            cudaGraphAddMemcpyNode1D(&o.node, w.graph, nullptr, 0, nullptr, w.memory, 64, cudaMemcpyDefault)),
      WRONG("cudaMalloc.capturing", shared, captured([] { return cudaMalloc(&o.p, 64); })),
      WRONG("cudaFree.capturing", shared, captured([] { return cudaFree(w.memory); })),
      WRONG("cudaMemcpy.capturing", shared,
            captured([] { return cudaMemcpy(w.memory, host, 64, cudaMemcpyHostToDevice); })),
      WRONG("cudaDeviceSynchronize.capturing", shared, captured([] { return cudaDeviceSynchronize(); })),
      WRONG("cudaStreamSynchronize.capturing", shared,
            captured([] { return cudaStreamSynchronize(w.stream); })),
      WRONG("cudaStreamQuery.capturing", shared, captured([] { return cudaStreamQuery(w.stream); })),
      WRONG("cudaEventQuery.capturing", shared, captured([] { return cudaEventQuery(w.event); })),
      WRONG("cudaStreamBeginCapture.capturing", shared, captured([] { return begin(); })),
      WRONG("launch.capturing_threads", shared, captured([] {
              fill<<<1, 2048, 0, w.stream>>>(w.memory, 1);
              return cudaPeekAtLastError();
            })),
      WRONG("launch.capturing_default_stream", shared, captured([] {
              fill<<<1, 32>>>(w.memory, 1);
              return cudaPeekAtLastError();
            })),
      WRONG("cudaMemPoolDestroy.null", shared, cudaMemPoolDestroy(nullptr)),
      WRONG("cudaIpcGetMemHandle.null", shared, cudaIpcGetMemHandle(nullptr, w.memory)),
      WRONG_DO("cudaIpcGetMemHandle.nowhere", shared,
               {
                 cudaIpcMemHandle_t h;
                 return cudaIpcGetMemHandle(&h, nowhere);
               }),
      WRONG("cudaIpcCloseMemHandle.not_opened", shared, cudaIpcCloseMemHandle(w.memory)),
      // launches
      WRONG("launch.threads", shared, (fill<<<1, 2048>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.no_threads", shared, (fill<<<1, 0>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.no_blocks", shared, (fill<<<0, 32>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.blocks_y", shared, (fill<<<dim3(1, 70000), 32>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.threads_z", shared, (fill<<<1, dim3(1, 1, 65)>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.shared", shared, (fill<<<1, 32, 1 << 20>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch.shared_with_static", shared,
            (shared_40k<<<1, 32, 16 << 10>>>(w.memory), cudaPeekAtLastError())),
      WRONG("launch.launch_bounds", shared, (few<<<1, 128>>>(w.memory), cudaPeekAtLastError())),
      WRONG_DO("launch.twice_then_last", shared,
               {
                 fill<<<1, 2048>>>(w.memory, 1);
                 fill<<<1, 32>>>(w.memory, 1);
                 return cudaPeekAtLastError();
               }),
      WRONG_DO("launch.threads_then_malloc", shared,
               {
                 fill<<<1, 2048>>>(w.memory, 1);
                 return cudaMalloc(&o.p, 64);
               }),
      WRONG_DO("launch.threads_then_synchronize", shared,
               {
                 fill<<<1, 2048>>>(w.memory, 1);
                 return cudaDeviceSynchronize();
               }),
      WRONG("cudaLaunchKernel.null", shared,
            cudaLaunchKernel(static_cast<const void*>(nullptr), 1, 1, nullptr, 0, nullptr)),
      WRONG("cudaLaunchKernel.not_a_kernel", shared,
            cudaLaunchKernel(reinterpret_cast<const void*>(not_a_kernel), 1, 1, nullptr, 0, nullptr)),
      WRONG_DO("cudaLaunchCooperativeKernel.too_many", shared,
               {
                 int *data = w.memory, value = 1;
                 void* parameters[] = {&data, &value};
                 return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(fill), dim3(1 << 20),
                                                    dim3(32), parameters, 0, w.stream);
               }),
      WRONG_DO("cudaLaunchKernelExC.null", shared,
               { return cudaLaunchKernelExC(nullptr, reinterpret_cast<const void*>(fill), nullptr); }),
      WRONG("cudaFuncGetAttributes.not_a_kernel", shared,
            cudaFuncGetAttributes(&o.function, reinterpret_cast<const void*>(not_a_kernel))),
      WRONG("cudaFuncGetAttributes.null", shared,
            cudaFuncGetAttributes(nullptr, reinterpret_cast<const void*>(fill))),
      WRONG("cudaFuncSetAttribute.shared_huge", shared,
            cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24)),
      WRONG("cudaFuncSetAttribute.unknown", shared,
            cudaFuncSetAttribute(fill, static_cast<cudaFuncAttribute>(99), 1)),
      WRONG("cudaFuncSetCacheConfig.not_a_kernel", shared,
            cudaFuncSetCacheConfig(reinterpret_cast<const void*>(not_a_kernel), cudaFuncCachePreferL1)),
      WRONG("cudaOccupancy.not_a_kernel", shared,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, reinterpret_cast<const void*>(not_a_kernel),
                                                          32, 0)),
      WRONG("cudaOccupancy.threads", shared,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, fill, 4096, 0)),
      WRONG("cudaGetDriverEntryPoint.unknown", shared,
            [] {
              cudaDriverEntryPointQueryResult r;
              return cudaGetDriverEntryPointByVersion("cuNoSuch", &o.p, 12000, 0, &r);
            }()),
      WRONG("cudaGetFuncBySymbol.not_a_kernel", shared,
            [] {
              cudaFunction_t f;
              return cudaGetFuncBySymbol(&f, reinterpret_cast<const void*>(not_a_kernel));
            }()),
      // errors that stay
      WRONG_DO("launch.traps", alone,
               {
                 trap<<<1, 1>>>();
                 return cudaPeekAtLastError();
               }),
      WRONG_DO("launch.wild", alone,
               {
                 write_wild<<<1, 1>>>();
                 return cudaDeviceSynchronize();
               }),
      WRONG_DO("launch.misaligned", alone,
               {
                 misaligned<<<1, 1>>>(reinterpret_cast<char*>(w.memory));
                 return cudaDeviceSynchronize();
               }),
      WRONG("cudaDeviceSynchronize@trapped", trapped, cudaDeviceSynchronize()),
      WRONG("cudaMalloc@trapped", trapped, cudaMalloc(&o.p, 64)),
      WRONG("cudaFree@trapped", trapped, cudaFree(w.memory)),
      WRONG("cudaMemcpy@trapped", trapped, cudaMemcpy(w.memory, host, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaStreamCreate@trapped", trapped, cudaStreamCreate(&o.stream)),
      WRONG("cudaEventQuery@trapped", trapped, cudaEventQuery(w.event)),
      WRONG("launch@trapped", trapped, (fill<<<1, 32>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("cudaGetDevice@trapped", trapped, cudaGetDevice(&o.i)),
      WRONG("cudaSetDevice@trapped", trapped, cudaSetDevice(0)),
      WRONG("cudaGetLastError@trapped", trapped, (cudaGetLastError(), cudaGetLastError())),
      WRONG_DO("cudaDeviceReset@trapped", trapped,
               {
                 const int code = cudaDeviceReset();
                 return code * 1000 + cudaMalloc(&o.p, 64);
               }),
      WRONG("cudaMalloc@wild", wild, cudaMalloc(&o.p, 64)),
      WRONG("cudaStreamSynchronize@wild", wild, cudaStreamSynchronize(w.stream)),
      WRONG("cudaFuncGetAttributes@wild", wild, cudaFuncGetAttributes(&o.function, fill)),
      WRONG_DO("cudaDeviceReset@wild", wild,
               {
                 const int code = cudaDeviceReset();
                 return code * 1000 + cudaMalloc(&o.p, 64);
               }),
      // after cudaDeviceReset
      WRONG("cudaFree@reset", reset, cudaFree(w.memory)),
      WRONG("cudaMalloc@reset", reset, cudaMalloc(&o.p, 64)),
      WRONG("cudaFreeHost@reset", reset, cudaFreeHost(w.pinned)),
      WRONG("cudaMemcpy@reset", reset, cudaMemcpy(w.memory, host, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaMemset@reset", reset, cudaMemset(w.memory, 0, 64)),
      WRONG("cudaStreamSynchronize@reset", reset, cudaStreamSynchronize(w.stream)),
      WRONG("cudaStreamDestroy@reset", reset, cudaStreamDestroy(w.stream)),
      WRONG("cudaEventRecord@reset", reset, cudaEventRecord(w.event, nullptr)),
      WRONG("cudaEventDestroy@reset", reset, cudaEventDestroy(w.event)),
      WRONG("cudaGraphLaunch@reset", reset, cudaGraphLaunch(w.exec, nullptr)),
      WRONG("launch@reset", reset, (fill<<<1, 32>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("launch_stream@reset", reset, (fill<<<1, 32, 0, w.stream>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("cudaPointerGetAttributes@reset", reset, cudaPointerGetAttributes(&o.about, w.memory)),
      WRONG("cudaDeviceReset@reset", reset, cudaDeviceReset()),
      // in a child of fork
      WRONG("cudaGetDeviceCount@forked", forked, cudaGetDeviceCount(&o.i)),
      WRONG("cudaSetDevice@forked", forked, cudaSetDevice(0)),
      WRONG("cudaMalloc@forked", forked, cudaMalloc(&o.p, 64)),
      WRONG("cudaFree@forked", forked, cudaFree(w.memory)),
      WRONG("cudaMemcpy@forked", forked, cudaMemcpy(w.memory, host, 64, cudaMemcpyHostToDevice)),
      WRONG("cudaDeviceSynchronize@forked", forked, cudaDeviceSynchronize()),
      WRONG("cudaStreamCreate@forked", forked, cudaStreamCreate(&o.stream)),
      WRONG("launch@forked", forked, (fill<<<1, 32>>>(w.memory, 1), cudaPeekAtLastError())),
      WRONG("cudaGetLastError@forked", forked, (cudaMalloc(&o.p, 64), cudaGetLastError())),
      WRONG("cudaDeviceReset@forked", forked, cudaDeviceReset()),
  };
}

class runtime_program final : public program {
 public:
  std::vector<wrong_call> table() const override {
    auto all = simple_calls();
    for (auto& c : ordered_calls()) all.push_back(c);
    return all;
  }

  std::string device() override {
    int driver = 0, runtime = 0;
    if (cudaGetDeviceProperties(&o.properties, 0) != cudaSuccess) return "no device";
    cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
    return std::string(o.properties.name) + ", driver API " + std::to_string(driver) + ", runtime " +
           std::to_string(runtime);
  }

  void prepare(const state& in) override {
    if (&in == &fresh) return;
    if (!w.memory) make_objects();
    cudaGetLastError();
    if (&in == &trapped) fail(cudaErrorLaunchFailure, [] { trap<<<1, 1>>>(); });
    if (&in == &wild) fail(cudaErrorIllegalAddress, [] { write_wild<<<1, 1>>>(); });
    if (&in == &reset) NEED(cudaDeviceReset());
  }

  std::string after(const state& in) override {
    if (&in == &forked) return "-";
    const int first = cudaGetLastError(), second = cudaGetLastError(), third = cudaDeviceSynchronize();
    cudaGetLastError();
    return std::to_string(first) + " " + std::to_string(second) + " " + std::to_string(third);
  }

  bool healthy(const std::string& after) override { return after == "-" || after.ends_with(" 0 0"); }

 private:
  template <class Launch>
  static void fail(cudaError_t expected, Launch launch) {
    launch();
    NEED(cudaPeekAtLastError());
    if (const int code = cudaDeviceSynchronize(); code != expected) throw not_set_up{code, __LINE__};
  }
  static void make_objects() {
    NEED(cudaMallocHost(&w.pinned, 65536));
    NEED(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    NEED(cudaEventCreate(&w.event));
    const auto one_float = cudaCreateChannelDesc<float>();
    NEED(cudaMallocArray(&w.array, &one_float, 64, 64));
    NEED(cudaGraphCreate(&w.graph, 0));
    NEED(cudaGraphInstantiate(&w.exec, w.graph, 0));
    w.memory = block(1 << 20);
    NEED(cudaDeviceSynchronize());
  }
};

}  // namespace
}  // namespace wrong_calls

int main(int count, char** values) {
  wrong_calls::runtime_program p;
  return wrong_calls::run(p, count, values);
}
