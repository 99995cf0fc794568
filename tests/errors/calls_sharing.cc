// Wrong calls of the chapters peer access, IPC, external memory, multicast, tensor maps, green contexts,
// profiler, core dumps, logs, checkpoints.
#include "world.hh"

namespace wrong_calls {

namespace {

CUresult tiled(unsigned rank, void* address, unsigned box, unsigned long long extent = 64) {
  static CUtensorMap map;
  const cuuint64_t dims[] = {extent, 64, 1, 1, 1}, strides[] = {256, 16384, 16384, 16384};
  const cuuint32_t boxes[] = {box, 8, 1, 1, 1}, steps[] = {1, 1, 1, 1, 1};
  return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address, dims, strides, boxes,
                                steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
void* memory() { return reinterpret_cast<void*>(w.memory); }
void CUDA_CB logged(void*, CUlogLevel, char*, std::size_t) {}

}  // namespace

calls sharing_calls() {
  return {
      WRONG("cuDeviceCanAccessPeer.null", in_context, cuDeviceCanAccessPeer(nullptr, w.device, w.device)),
      WRONG("cuDeviceCanAccessPeer.device", in_context, cuDeviceCanAccessPeer(&o.i, w.device, 99)),
      WRONG("cuDeviceGetP2PAttribute.same", in_context,
            cuDeviceGetP2PAttribute(&o.i, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, w.device, w.device)),
      WRONG("cuDeviceGetP2PAttribute.device", in_context,
            cuDeviceGetP2PAttribute(&o.i, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, w.device, 99)),
      WRONG("cuDeviceGetP2PAttribute.null", in_context,
            cuDeviceGetP2PAttribute(nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, w.device, w.device)),
      WRONG("cuCtxEnablePeerAccess.null", in_context, cuCtxEnablePeerAccess(nullptr, 0)),
      WRONG("cuCtxEnablePeerAccess.itself", in_context, cuCtxEnablePeerAccess(w.context, 0)),
      WRONG("cuCtxEnablePeerAccess.flags", in_context, cuCtxEnablePeerAccess(w.context, 1)),
      WRONG("cuCtxEnablePeerAccess.none", no_context, cuCtxEnablePeerAccess(w.context, 0)),
      WRONG_DO("cuCtxEnablePeerAccess.same_device", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 return cuCtxEnablePeerAccess(w.context, 0);
               }),
      WRONG("cuCtxDisablePeerAccess.null", in_context, cuCtxDisablePeerAccess(nullptr)),
      WRONG("cuCtxDisablePeerAccess.not_enabled", in_context, cuCtxDisablePeerAccess(w.context)),
      // IPC
      WRONG("cuIpcGetEventHandle.null", in_context, cuIpcGetEventHandle(nullptr, w.event)),
      WRONG("cuIpcGetEventHandle.null_event", in_context,
            [] {
              CUipcEventHandle h;
              return cuIpcGetEventHandle(&h, nullptr);
            }()),
      WRONG("cuIpcGetEventHandle.not_interprocess", in_context,
            [] {
              CUipcEventHandle h;
              return cuIpcGetEventHandle(&h, w.event);
            }()),
      WRONG("cuIpcOpenEventHandle.nonsense", in_context,
            [] {
              CUipcEventHandle h{};
              return cuIpcOpenEventHandle(&o.event, h);
            }()),
      WRONG_DO("cuIpcOpenEventHandle.own", in_context,
               {
                 NEED(cuEventCreate(&o.event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
                 CUipcEventHandle h{};
                 NEED(cuIpcGetEventHandle(&h, o.event));
                 CUevent again = nullptr;
                 return cuIpcOpenEventHandle(&again, h);
               }),
      WRONG("cuIpcGetMemHandle.null", in_context, cuIpcGetMemHandle(nullptr, w.memory)),
      WRONG("cuIpcGetMemHandle.null_address", in_context,
            [] {
              CUipcMemHandle h;
              return cuIpcGetMemHandle(&h, 0);
            }()),
      WRONG("cuIpcGetMemHandle.nowhere", in_context,
            [] {
              CUipcMemHandle h;
              return cuIpcGetMemHandle(&h, 0x6'0000'0000'0000ull);
            }()),
      WRONG("cuIpcGetMemHandle.pinned", in_context,
            [] {
              CUipcMemHandle h;
              return cuIpcGetMemHandle(&h, reinterpret_cast<CUdeviceptr>(w.pinned));
            }()),
      WRONG_DO("cuIpcGetMemHandle.managed", in_context,
               {
                 NEED(cuMemAllocManaged(&o.d, 4096, CU_MEM_ATTACH_GLOBAL));
                 CUipcMemHandle h;
                 return cuIpcGetMemHandle(&h, o.d);
               }),
      WRONG_DO("cuIpcGetMemHandle.from_stream", in_context,
               {
                 NEED(cuMemAllocAsync(&o.d, 4096, w.stream));
                 CUipcMemHandle h;
                 return cuIpcGetMemHandle(&h, o.d);
               }),
      WRONG("cuIpcOpenMemHandle.nonsense", in_context,
            [] {
              CUipcMemHandle h{};
              return cuIpcOpenMemHandle(&o.d, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
            }()),
      WRONG("cuIpcOpenMemHandle.flags", in_context,
            [] {
              CUipcMemHandle h{};
              return cuIpcOpenMemHandle(&o.d, h, 0);
            }()),
      WRONG_DO("cuIpcOpenMemHandle.own", in_context,
               {
                 CUipcMemHandle h{};
                 NEED(cuIpcGetMemHandle(&h, w.memory));
                 return cuIpcOpenMemHandle(&o.d, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
               }),
      WRONG_DO("cuIpcOpenMemHandle.null", in_context,
               {
                 CUipcMemHandle h{};
                 NEED(cuIpcGetMemHandle(&h, w.memory));
                 return cuIpcOpenMemHandle(nullptr, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
               }),
      WRONG("cuIpcCloseMemHandle.null", in_context, cuIpcCloseMemHandle(0)),
      WRONG("cuIpcCloseMemHandle.not_opened", in_context, cuIpcCloseMemHandle(w.memory)),
      WRONG("cuIpcCloseMemHandle.nowhere", in_context, cuIpcCloseMemHandle(0x6'0000'0000'0000ull)),
      // external objects
      WRONG("cuImportExternalMemory.null", in_context,
            [] {
              CUexternalMemory m;
              return cuImportExternalMemory(&m, nullptr);
            }()),
      WRONG("cuImportExternalMemory.type", in_context,
            [] {
              CUexternalMemory m;
              CUDA_EXTERNAL_MEMORY_HANDLE_DESC d{};
              d.type = static_cast<CUexternalMemoryHandleType>(99), d.size = 4096;
              return cuImportExternalMemory(&m, &d);
            }()),
      WRONG("cuImportExternalMemory.bad_descriptor", in_context,
            [] {
              CUexternalMemory m;
              CUDA_EXTERNAL_MEMORY_HANDLE_DESC d{};
              d.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, d.handle.fd = 999, d.size = 4096;
              return cuImportExternalMemory(&m, &d);
            }()),
      WRONG("cuDestroyExternalMemory.null", in_context, cuDestroyExternalMemory(nullptr)),
      WRONG("cuImportExternalSemaphore.null", in_context,
            [] {
              CUexternalSemaphore s;
              return cuImportExternalSemaphore(&s, nullptr);
            }()),
      WRONG("cuImportExternalSemaphore.type", in_context,
            [] {
              CUexternalSemaphore s;
              CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d{};
              d.type = static_cast<CUexternalSemaphoreHandleType>(99);
              return cuImportExternalSemaphore(&s, &d);
            }()),
      WRONG("cuDestroyExternalSemaphore.null", in_context, cuDestroyExternalSemaphore(nullptr)),
      WRONG("cuSignalExternalSemaphoresAsync.nulls", in_context,
            cuSignalExternalSemaphoresAsync(nullptr, nullptr, 1, w.stream)),
      WRONG("cuExternalMemoryGetMappedBuffer.null", in_context,
            cuExternalMemoryGetMappedBuffer(&o.d, nullptr, nullptr)),
      // multicast: nothing here makes an object
      WRONG("cuMulticastCreate.null", in_context, cuMulticastCreate(&o.allocation, nullptr)),
      WRONG("cuMulticastAddDevice.null", in_context, cuMulticastAddDevice(0, w.device)),
      WRONG("cuMulticastBindMem.null", in_context, cuMulticastBindMem(0, 0, 0, 0, 2 << 20, 0)),
      WRONG("cuMulticastUnbind.null", in_context, cuMulticastUnbind(0, w.device, 0, 2 << 20)),
      WRONG("cuMulticastGetGranularity.null", in_context,
            cuMulticastGetGranularity(nullptr, nullptr, CU_MULTICAST_GRANULARITY_MINIMUM)),
  };
}

calls other_calls() {
  return {
      WRONG("cuProfilerStart.none", no_context, cuProfilerStart()),
      WRONG("cuTensorMapEncodeTiled.rank_zero", in_context, tiled(0, memory(), 8)),
      WRONG("cuTensorMapEncodeTiled.rank_six", in_context, tiled(6, memory(), 8)),
      WRONG("cuTensorMapEncodeTiled.null_address", in_context, tiled(2, nullptr, 8)),
      WRONG("cuTensorMapEncodeTiled.unaligned", in_context, tiled(2, static_cast<char*>(memory()) + 4, 8)),
      WRONG("cuTensorMapEncodeTiled.box_large", in_context, tiled(2, memory(), 512)),
      WRONG("cuTensorMapEncodeTiled.box_zero", in_context, tiled(2, memory(), 0)),
      WRONG("cuTensorMapEncodeTiled.no_extent", in_context, tiled(2, memory(), 8, 0)),
      WRONG("cuTensorMapReplaceAddress.null", in_context, cuTensorMapReplaceAddress(nullptr, memory())),
      WRONG("cuGreenCtxCreate.null", in_context,
            [] {
              CUgreenCtx g;
              return cuGreenCtxCreate(&g, nullptr, w.device, CU_GREEN_CTX_DEFAULT_STREAM);
            }()),
      WRONG("cuGreenCtxDestroy.null", in_context, cuGreenCtxDestroy(nullptr)),
      WRONG("cuCtxFromGreenCtx.null", in_context, cuCtxFromGreenCtx(&o.context, nullptr)),
      WRONG("cuDeviceGetDevResource.null", in_context,
            cuDeviceGetDevResource(w.device, nullptr, CU_DEV_RESOURCE_TYPE_SM)),
      WRONG("cuDeviceGetDevResource.type", in_context,
            [] {
              CUdevResource r{};
              return cuDeviceGetDevResource(w.device, &r, static_cast<CUdevResourceType>(99));
            }()),
      WRONG("cuDeviceGetDevResource.device", in_context,
            [] {
              CUdevResource r{};
              return cuDeviceGetDevResource(99, &r, CU_DEV_RESOURCE_TYPE_SM);
            }()),
      WRONG("cuCtxGetDevResource.null", in_context,
            cuCtxGetDevResource(w.context, nullptr, CU_DEV_RESOURCE_TYPE_SM)),
      WRONG("cuDevSmResourceSplitByCount.nulls", in_context,
            [] {
              unsigned n = 1;
              return cuDevSmResourceSplitByCount(nullptr, &n, nullptr, nullptr, 0, 8);
            }()),
      WRONG("cuDevResourceGenerateDesc.null", in_context,
            [] {
              CUdevResourceDesc d;
              return cuDevResourceGenerateDesc(&d, nullptr, 1);
            }()),
      WRONG("cuGreenCtxStreamCreate.null", in_context,
            cuGreenCtxStreamCreate(&o.stream, nullptr, CU_STREAM_NON_BLOCKING, 0)),
      WRONG("cuStreamGetGreenCtx.null", in_context, cuStreamGetGreenCtx(w.stream, nullptr)),
      WRONG("cuCoredumpGetAttribute.null", in_context,
            cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, nullptr, &o.n)),
      WRONG("cuCoredumpGetAttribute.unknown", in_context,
            [] {
              o.n = 4;
              return cuCoredumpGetAttribute(static_cast<CUcoredumpSettings>(99), &o.i, &o.n);
            }()),
      WRONG("cuCoredumpGetAttribute.none", no_context,
            [] {
              o.n = 1;
              return cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &o.i, &o.n);
            }()),
      WRONG("cuCoredumpSetAttribute.null", in_context,
            [] {
              o.n = 1;
              return cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, nullptr, &o.n);
            }()),
      WRONG("cuCoredumpSetAttributeGlobal.unknown", in_context,
            [] {
              o.n = 4;
              return cuCoredumpSetAttributeGlobal(static_cast<CUcoredumpSettings>(99), &o.i, &o.n);
            }()),
      WRONG("cuLogsRegisterCallback.null", in_context,
            [] {
              CUlogsCallbackHandle h;
              return cuLogsRegisterCallback(nullptr, nullptr, &h);
            }()),
      WRONG("cuLogsRegisterCallback.null_output", in_context,
            cuLogsRegisterCallback(logged, nullptr, nullptr)),
      WRONG("cuLogsUnregisterCallback.null", in_context, cuLogsUnregisterCallback(nullptr)),
      WRONG("cuLogsCurrent.null", in_context, cuLogsCurrent(nullptr, 0)),
      WRONG("cuLogsCurrent.flags", in_context,
            [] {
              CUlogIterator i;
              return cuLogsCurrent(&i, 1);
            }()),
      WRONG("cuLogsDumpToFile.null", in_context, cuLogsDumpToFile(nullptr, nullptr, 0)),
      WRONG("cuLogsDumpToFile.no_folder", in_context, cuLogsDumpToFile(nullptr, "/no/such/folder/log", 0)),
      WRONG("cuLogsDumpToMemory.nulls", in_context, cuLogsDumpToMemory(nullptr, nullptr, nullptr, 0)),
      WRONG("cuCheckpointProcessGetState.nobody", in_context,
            [] {
              CUprocessState s;
              return cuCheckpointProcessGetState(0x3fffffff, &s);
            }()),
      WRONG("cuCheckpointProcessLock.nobody", in_context, cuCheckpointProcessLock(0x3fffffff, nullptr)),
      WRONG("cuCheckpointProcessGetRestoreThreadId.nobody", in_context,
            cuCheckpointProcessGetRestoreThreadId(0x3fffffff, &o.i)),
      WRONG("cuMemBatchDecompressAsync.null", in_context,
            cuMemBatchDecompressAsync(nullptr, 1, 0, &o.n, w.stream)),
      WRONG("cuDeviceRegisterAsyncNotification.null", in_context,
            cuDeviceRegisterAsyncNotification(w.device, nullptr, nullptr, nullptr)),
  };
}

}  // namespace wrong_calls
