// Wrong calls while a stream captures. The second code is what EndCapture returns afterwards.
#include "world.hh"

namespace wrong_calls {

namespace {

void nothing(void*) {}
void CUDA_CB told(CUstream, CUresult, void*) {}
CUresult launch(CUstream s) {
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr);
}
/// Brings `other` into the capture of `stream`.
void fork_other() {
  NEED(cuEventRecord(w.event, w.stream));
  NEED(cuStreamWaitEvent(w.other, w.event, 0));
}

}  // namespace

calls capture_calls() {
  return {
      WRONG("cuStreamBeginCapture.default", in_context,
            cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL)),
      WRONG("cuStreamBeginCapture.legacy", in_context,
            cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL)),
      WRONG("cuStreamBeginCapture.mode", in_context,
            cuStreamBeginCapture(w.other, static_cast<CUstreamCaptureMode>(9))),
      WRONG("cuStreamBeginCapture.twice", capturing,
            cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL)),
      WRONG("cuStreamBeginCapture.none_default", no_context,
            cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL)),
      WRONG(
          "cuStreamBeginCaptureToGraph.null_graph", in_context,
          cuStreamBeginCaptureToGraph(w.other, nullptr, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL)),
      WRONG("cuStreamBeginCaptureToGraph.null_dependencies", in_context,
            [] {
              const CUresult code = cuStreamBeginCaptureToGraph(w.other, w.graph, nullptr, nullptr, 1,
                                                                CU_STREAM_CAPTURE_MODE_GLOBAL);
              if (code == CUDA_SUCCESS) cuStreamEndCapture(w.other, &o.graph);
              return code;
            }()),
      WRONG("cuStreamEndCapture.not_capturing", in_context, cuStreamEndCapture(w.other, &o.graph)),
      WRONG("cuStreamEndCapture.default", in_context, cuStreamEndCapture(nullptr, &o.graph)),
      WRONG("cuStreamEndCapture.null", capturing, cuStreamEndCapture(w.stream, nullptr)),
      WRONG_DO("cuStreamEndCapture.member", capturing,
               {
                 fork_other();
                 return cuStreamEndCapture(w.other, &o.graph);
               }),
      WRONG_DO("cuStreamEndCapture.unjoined", capturing,
               {
                 fork_other();
                 NEED(launch(w.other));
                 return cuStreamEndCapture(w.stream, &o.graph);
               }),
      WRONG_DO("cuStreamEndCapture.other_thread", capturing,
               {
                 CUresult code = CUDA_SUCCESS;
                 std::thread([&] {
                   cuCtxSetCurrent(w.context);
                   code = cuStreamEndCapture(w.stream, &o.graph);
                 }).join();
                 return code;
               }),
      WRONG_DO("cuStreamEndCapture.twice", capturing,
               {
                 NEED(cuStreamEndCapture(w.stream, &o.graph));
                 return cuStreamEndCapture(w.stream, &o.graph);
               }),
      WRONG("cuStreamIsCapturing.null", in_context, cuStreamIsCapturing(w.stream, nullptr)),
      WRONG("cuStreamIsCapturing.default_while_relaxed", relaxed,
            [] {
              CUstreamCaptureStatus s;
              return cuStreamIsCapturing(nullptr, &s);
            }()),
      WRONG("cuStreamGetCaptureInfo.null", in_context,
            cuStreamGetCaptureInfo(w.stream, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)),
      WRONG_DO("cuStreamGetCaptureInfo.default_while_relaxed", relaxed,
               {
                 CUstreamCaptureStatus s;
                 return cuStreamGetCaptureInfo(nullptr, &s, nullptr, nullptr, nullptr, nullptr, nullptr);
               }),
      WRONG("cuStreamUpdateCaptureDependencies.not_capturing", in_context,
            cuStreamUpdateCaptureDependencies(w.stream, nullptr, nullptr, 0, 0)),
      WRONG("cuStreamUpdateCaptureDependencies.flags", capturing,
            cuStreamUpdateCaptureDependencies(w.stream, nullptr, nullptr, 0, 8)),
      WRONG("cuStreamUpdateCaptureDependencies.null", capturing,
            cuStreamUpdateCaptureDependencies(w.stream, nullptr, nullptr, 1, 0)),
      WRONG_DO("cuStreamUpdateCaptureDependencies.foreign", capturing,
               { return cuStreamUpdateCaptureDependencies(w.stream, &w.node, nullptr, 1, 0); }),
      // not permitted while a stream captures in global mode
      WRONG("cuMemAlloc.capturing", capturing, cuMemAlloc(&o.d, 64)),
      WRONG("cuMemAlloc.capturing_null", capturing, cuMemAlloc(nullptr, 64)),
      WRONG("cuMemAllocPitch.capturing", capturing, cuMemAllocPitch(&o.d, &o.n, 64, 4, 4)),
      WRONG("cuMemAllocManaged.capturing", capturing, cuMemAllocManaged(&o.d, 64, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuMemFree.capturing", capturing, cuMemFree(w.memory)),
      WRONG("cuMemFree.capturing_null", capturing, cuMemFree(0)),
      WRONG("cuMemHostAlloc.capturing", capturing, cuMemHostAlloc(&o.p, 64, 0)),
      WRONG("cuMemFreeHost.capturing", capturing, cuMemFreeHost(w.pinned)),
      WRONG("cuMemHostRegister.capturing", capturing, cuMemHostRegister(host, 4096, 0)),
      WRONG("cuMemHostUnregister.capturing", capturing, cuMemHostUnregister(host)),
      WRONG("cuCtxSynchronize.capturing", capturing, cuCtxSynchronize()),
      WRONG("cuCtxSetLimit.capturing", capturing, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)),
      WRONG("cuCtxSetCacheConfig.capturing", capturing, cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1)),
      WRONG("cuCtxSetSharedMemConfig.capturing", capturing,
            cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE)),
      WRONG("cuStreamSynchronize.capturing", capturing, cuStreamSynchronize(w.stream)),
      WRONG("cuStreamSynchronize.capturing_other", capturing, cuStreamSynchronize(w.other)),
      WRONG("cuStreamSynchronize.capturing_default", capturing, cuStreamSynchronize(nullptr)),
      WRONG("cuStreamQuery.capturing", capturing, cuStreamQuery(w.stream)),
      WRONG("cuStreamQuery.capturing_other", capturing, cuStreamQuery(w.other)),
      WRONG("cuStreamGetFlags.capturing", capturing, cuStreamGetFlags(w.stream, &o.u)),
      WRONG("cuStreamGetId.capturing", capturing, cuStreamGetId(w.stream, &o.l)),
      WRONG("cuStreamAddCallback.capturing", capturing, cuStreamAddCallback(w.stream, told, nullptr, 0)),
      WRONG("cuStreamDestroy.capturing", alone,
            [] {
              NEED(cuStreamCreate(&o.stream, CU_STREAM_NON_BLOCKING));
              NEED(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
              return cuStreamDestroy(o.stream);
            }()),
      WRONG("cuEventQuery.capturing", capturing, cuEventQuery(w.event)),
      WRONG("cuEventSynchronize.capturing", capturing, cuEventSynchronize(w.event)),
      WRONG_DO("cuEventQuery.captured", capturing,
               {
                 NEED(cuEventRecord(w.event, w.stream));
                 return cuEventQuery(w.event);
               }),
      WRONG_DO("cuEventSynchronize.captured", capturing,
               {
                 NEED(cuEventRecord(w.event, w.stream));
                 return cuEventSynchronize(w.event);
               }),
      WRONG_DO("cuEventQuery.captured_before", in_context,
               {
                 CUevent e = nullptr;
                 NEED(cuEventCreate(&e, 0));
                 NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
                 NEED(cuEventRecord(e, w.stream));
                 NEED(cuStreamEndCapture(w.stream, &o.graph));
                 return cuEventQuery(e);
               }),
      WRONG_DO("cuStreamWaitEvent.captured_before", in_context,
               {
                 CUevent e = nullptr;
                 NEED(cuEventCreate(&e, 0));
                 NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
                 NEED(cuEventRecord(e, w.stream));
                 NEED(cuStreamEndCapture(w.stream, &o.graph));
                 return cuStreamWaitEvent(w.other, e, 0);
               }),
      WRONG_DO("cuStreamWaitEvent.isolation", alone,
               {
                 NEED(cuEventRecord(w.event, w.other));
                 NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
                 const CUresult code = cuStreamWaitEvent(w.stream, w.event, 0);
                 return code * 1000 + cuStreamEndCapture(w.stream, &o.graph);
               }),
      WRONG_DO("cuEventElapsedTime.captured", capturing,
               {
                 NEED(cuEventRecord(w.event, w.stream));
                 return cuEventElapsedTime(&o.f, w.event, w.event);
               }),
      WRONG_DO("cuStreamWaitEvent.two_captures", alone,
               {
                 NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
                 NEED(cuStreamBeginCapture(w.other, CU_STREAM_CAPTURE_MODE_RELAXED));
                 NEED(cuEventRecord(w.event, w.stream));
                 return cuStreamWaitEvent(w.other, w.event, 0);
               }),
      WRONG("cuModuleUnload.capturing", capturing, cuModuleUnload(w.module)),
      WRONG("cuLibraryUnload.capturing", capturing, cuLibraryUnload(w.library)),
      WRONG("cuGraphInstantiate.capturing", capturing, cuGraphInstantiate(&o.exec, w.graph, 0)),
      WRONG("cuGraphExecDestroy.capturing", capturing, cuGraphExecDestroy(w.exec)),
      WRONG("cuArrayCreate.capturing", capturing,
            [] {
              CUDA_ARRAY_DESCRIPTOR a{};
              a.Width = 8, a.Height = 8, a.Format = CU_AD_FORMAT_FLOAT, a.NumChannels = 1;
              return cuArrayCreate(&o.array, &a);
            }()),
      WRONG("cuArrayDestroy.capturing", capturing, cuArrayDestroy(w.array)),
      WRONG("cuProfilerStart.capturing", capturing, cuProfilerStart()),
      WRONG("cuMemAllocAsync.capturing_other", capturing, cuMemAllocAsync(&o.d, 64, w.other)),
      WRONG("cuMemFreeAsync.capturing_outside_memory", capturing, cuMemFreeAsync(w.memory, w.stream)),
      WRONG("cuMemPrefetchAsync.capturing", capturing,
            cuMemPrefetchAsync(w.memory, 4096, CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, w.stream)),
      WRONG("cuStreamAttachMemAsync.capturing", capturing,
            cuStreamAttachMemAsync(w.stream, w.memory, 0, CU_MEM_ATTACH_GLOBAL)),
      // wrong arguments in what is permitted
      WRONG("cuLaunchKernel.capturing_shape", capturing,
            [] {
              CUdeviceptr address = w.memory;
              unsigned value = 1;
              void* parameters[] = {&address, &value};
              return cuLaunchKernel(w.function, 1, 1, 1, 4096, 1, 1, 0, w.stream, parameters, nullptr);
            }()),
      WRONG("cuMemcpyHtoDAsync.capturing_nowhere", capturing,
            cuMemcpyHtoDAsync(0x6'0000'0000'0000ull, host, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.capturing_null", capturing,
            cuMemcpyHtoDAsync(w.memory, nullptr, 64, w.stream)),
      WRONG("cuMemsetD8Async.capturing_nowhere", capturing,
            cuMemsetD8Async(0x6'0000'0000'0000ull, 1, 64, w.stream)),
      WRONG("cuMemsetD32Async.capturing_unaligned", capturing,
            cuMemsetD32Async(w.memory + 1, 1, 64, w.stream)),
      WRONG("cuLaunchHostFunc.capturing_null", capturing, cuLaunchHostFunc(w.stream, nullptr, nullptr)),
      WRONG("cuLaunchHostFunc.capturing_nothing_wrong", capturing,
            cuLaunchHostFunc(w.stream, nothing, nullptr)),
      WRONG("cuGraphLaunch.capturing_null", capturing, cuGraphLaunch(nullptr, w.stream)),
      WRONG("cuEventRecordWithFlags.capturing_external", capturing,
            cuEventRecordWithFlags(w.event, w.stream, CU_EVENT_RECORD_EXTERNAL)),
      // the legacy stream, while a blocking stream captures in relaxed mode
      WRONG("cuMemcpyHtoD.relaxed", relaxed, cuMemcpyHtoD(w.memory, host, 64)),
      WRONG("cuMemcpyDtoH.relaxed", relaxed, cuMemcpyDtoH(host, w.memory, 64)),
      WRONG("cuMemcpyDtoD.relaxed", relaxed, cuMemcpyDtoD(w.memory, w.memory + 4096, 64)),
      WRONG("cuMemsetD8.relaxed", relaxed, cuMemsetD8(w.memory, 1, 64)),
      WRONG("cuMemsetD8Async.relaxed_default", relaxed, cuMemsetD8Async(w.memory, 1, 64, nullptr)),
      WRONG("cuLaunchKernel.relaxed_default", relaxed, launch(nullptr)),
      WRONG("cuEventRecord.relaxed_default", relaxed, cuEventRecord(w.event, nullptr)),
      WRONG("cuStreamSynchronize.relaxed_default", relaxed, cuStreamSynchronize(nullptr)),
      WRONG("cuStreamQuery.relaxed_default", relaxed, cuStreamQuery(nullptr)),
      WRONG("cuLaunchHostFunc.relaxed_default", relaxed, cuLaunchHostFunc(nullptr, nothing, nullptr)),
      WRONG("cuStreamSynchronize.relaxed", relaxed, cuStreamSynchronize(w.stream)),
      WRONG("cuCtxSynchronize.relaxed", relaxed, cuCtxSynchronize()),
      WRONG("cuMemAlloc.relaxed", relaxed, cuMemAlloc(&o.d, 64)),
      WRONG("cuGraphLaunch.relaxed_default", relaxed, cuGraphLaunch(w.exec, nullptr)),
      WRONG("cuMemAllocAsync.relaxed_default", relaxed, cuMemAllocAsync(&o.d, 64, nullptr)),
      WRONG_DO("cuMemAlloc.thread_local_other_thread", in_context,
               {
                 NEED(cuStreamBeginCapture(w.other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
                 CUresult code = CUDA_SUCCESS;
                 std::thread([&] {
                   cuCtxSetCurrent(w.context);
                   code = cuMemAlloc(&o.d, 64);
                 }).join();
                 return code * 1000 + cuStreamEndCapture(w.other, &o.graph);
               }),
      WRONG_DO("cuMemAlloc.global_other_thread", capturing,
               {
                 CUresult code = CUDA_SUCCESS;
                 std::thread([&] {
                   cuCtxSetCurrent(w.context);
                   code = cuMemAlloc(&o.d, 64);
                 }).join();
                 return code;
               }),
      WRONG_DO("cuMemAlloc.thread_local_own_thread", in_context,
               {
                 NEED(cuStreamBeginCapture(w.other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
                 const CUresult code = cuMemAlloc(&o.d, 64);
                 return code * 1000 + cuStreamEndCapture(w.other, &o.graph);
               }),
      WRONG_DO("cuMemAlloc.capturing_exchanged_mode", capturing,
               {
                 CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
                 NEED(cuThreadExchangeStreamCaptureMode(&mode));
                 const CUresult code = cuMemAlloc(&o.d, 64);
                 NEED(cuThreadExchangeStreamCaptureMode(&mode));
                 return code;
               }),
      WRONG_DO("cuLaunchKernel.invalidated", capturing,
               {
                 cuMemAlloc(&o.d, 64);
                 return launch(w.stream);
               }),
      WRONG_DO("cuStreamIsCapturing.invalidated", capturing,
               {
                 cuMemAlloc(&o.d, 64);
                 CUstreamCaptureStatus s{};
                 const CUresult code = cuStreamIsCapturing(w.stream, &s);
                 return code * 1000 + s;
               }),
      WRONG_DO("cuStreamBeginCapture.invalidated", capturing,
               {
                 cuMemAlloc(&o.d, 64);
                 return cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
               }),
  };
}

}  // namespace wrong_calls
