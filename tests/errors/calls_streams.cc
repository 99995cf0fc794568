// Wrong calls of the chapters streams, events, stream memory operations, and of every chapter while a stream
// captures.
#include "world.hh"

namespace wrong_calls {

namespace {

CUstream stream_gone() {
  NEED(cuStreamCreate(&o.stream, 0));
  NEED(cuStreamDestroy(o.stream));
  return o.stream;
}
CUevent event_gone() {
  NEED(cuEventCreate(&o.event, 0));
  NEED(cuEventDestroy(o.event));
  return o.event;
}
CUevent event(unsigned flags = 0) {
  NEED(cuEventCreate(&o.event, flags));
  return o.event;
}
CUevent recorded(unsigned flags = 0) {
  CUevent e = event(flags);
  NEED(cuEventRecord(e, w.other));
  NEED(cuEventSynchronize(e));
  return e;
}
void nothing(void*) {}
void CUDA_CB told(CUstream, CUresult, void*) {}
CUresult launch(CUstream s) {
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr);
}

}  // namespace

calls stream_calls() {
  return {
      WRONG("cuStreamCreate.null", in_context, cuStreamCreate(nullptr, 0)),
      WRONG("cuStreamCreate.flags", in_context, cuStreamCreate(&o.stream, 0x10)),
      WRONG("cuStreamCreate.none", no_context, cuStreamCreate(&o.stream, 0)),
      WRONG("cuStreamCreateWithPriority.null", in_context, cuStreamCreateWithPriority(nullptr, 0, 0)),
      WRONG("cuStreamCreateWithPriority.flags", in_context, cuStreamCreateWithPriority(&o.stream, 0x10, 0)),
      WRONG("cuStreamCreateWithPriority.out_of_range", in_context,
            cuStreamCreateWithPriority(&o.stream, 0, -1000)),
      WRONG("cuStreamDestroy.null", in_context, cuStreamDestroy(nullptr)),
      WRONG("cuStreamDestroy.legacy", in_context, cuStreamDestroy(CU_STREAM_LEGACY)),
      WRONG("cuStreamDestroy.per_thread", in_context, cuStreamDestroy(CU_STREAM_PER_THREAD)),
      WRONG("cuStreamDestroy.twice", alone, cuStreamDestroy(stream_gone())),
      WRONG("cuStreamSynchronize.gone", alone, cuStreamSynchronize(stream_gone())),
      WRONG("cuStreamQuery.gone", alone, cuStreamQuery(stream_gone())),
      WRONG("cuStreamGetFlags.gone", alone, cuStreamGetFlags(stream_gone(), &o.u)),
      WRONG("cuStreamGetCtx.gone", alone, cuStreamGetCtx(stream_gone(), &o.context)),
      WRONG("cuLaunchKernel.stream_gone", alone, launch(stream_gone())),
      WRONG("cuMemsetD8Async.stream_gone", alone, cuMemsetD8Async(w.memory, 0, 64, stream_gone())),
      WRONG("cuEventRecord.stream_gone", alone, cuEventRecord(w.event, stream_gone())),
      WRONG("cuStreamGetFlags.null", in_context, cuStreamGetFlags(w.stream, nullptr)),
      WRONG("cuStreamGetFlags.none_default", no_context, cuStreamGetFlags(nullptr, &o.u)),
      WRONG("cuStreamGetPriority.null", in_context, cuStreamGetPriority(w.stream, nullptr)),
      WRONG("cuStreamGetPriority.none_default", no_context, cuStreamGetPriority(nullptr, &o.i)),
      WRONG("cuStreamGetDevice.null", in_context, cuStreamGetDevice(w.stream, nullptr)),
      WRONG("cuStreamGetId.null", in_context, cuStreamGetId(w.stream, nullptr)),
      WRONG("cuStreamGetId.none_default", no_context, cuStreamGetId(nullptr, &o.l)),
      WRONG("cuStreamGetCtx.null", in_context, cuStreamGetCtx(w.stream, nullptr)),
      WRONG("cuStreamGetCtx.none_default", no_context, cuStreamGetCtx(nullptr, &o.context)),
      WRONG("cuStreamQuery.none_default", no_context, cuStreamQuery(nullptr)),
      WRONG("cuStreamQuery.none_legacy", no_context, cuStreamQuery(CU_STREAM_LEGACY)),
      WRONG("cuStreamSynchronize.none_per_thread", no_context, cuStreamSynchronize(CU_STREAM_PER_THREAD)),
      WRONG("cuStreamWaitEvent.null_event", in_context, cuStreamWaitEvent(w.stream, nullptr, 0)),
      WRONG("cuStreamWaitEvent.flags", in_context, cuStreamWaitEvent(w.stream, recorded(), 8)),
      WRONG("cuStreamWaitEvent.never_recorded", in_context, cuStreamWaitEvent(w.stream, event(), 0)),
      WRONG("cuStreamWaitEvent.event_gone", alone, cuStreamWaitEvent(w.stream, event_gone(), 0)),
      WRONG("cuStreamWaitEvent.external", in_context,
            cuStreamWaitEvent(w.stream, recorded(), CU_EVENT_WAIT_EXTERNAL)),
      WRONG("cuStreamAddCallback.null", in_context, cuStreamAddCallback(w.stream, nullptr, nullptr, 0)),
      WRONG("cuStreamAddCallback.flags", in_context, cuStreamAddCallback(w.stream, told, nullptr, 1)),
      WRONG("cuLaunchHostFunc.null", in_context, cuLaunchHostFunc(w.stream, nullptr, nullptr)),
      WRONG("cuLaunchHostFunc.none_default", no_context, cuLaunchHostFunc(nullptr, nothing, nullptr)),
      WRONG("cuStreamCopyAttributes.other_null", in_context, cuStreamCopyAttributes(w.stream, nullptr)),
      WRONG("cuStreamGetAttribute.null", in_context,
            cuStreamGetAttribute(w.stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr)),
      WRONG("cuStreamGetAttribute.unknown", in_context,
            [] {
              CUstreamAttrValue v;
              return cuStreamGetAttribute(w.stream, static_cast<CUstreamAttrID>(99), &v);
            }()),
      WRONG("cuStreamGetAttribute.of_launches", in_context,
            [] {
              CUstreamAttrValue v;
              return cuStreamGetAttribute(w.stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v);
            }()),
      WRONG("cuStreamSetAttribute.null", in_context,
            cuStreamSetAttribute(w.stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr)),
      WRONG("cuStreamSetAttribute.unknown", in_context,
            [] {
              CUstreamAttrValue v{};
              return cuStreamSetAttribute(w.stream, static_cast<CUstreamAttrID>(99), &v);
            }()),
      WRONG("cuStreamSetAttribute.policy", in_context,
            [] {
              CUstreamAttrValue v{};
              v.syncPolicy = static_cast<CUsynchronizationPolicy>(99);
              return cuStreamSetAttribute(w.stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v);
            }()),
      WRONG("cuStreamSetAttribute.window_ratio", in_context,
            [] {
              CUstreamAttrValue v{};
              v.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(w.memory);
              v.accessPolicyWindow.num_bytes = 4096, v.accessPolicyWindow.hitRatio = 7;
              return cuStreamSetAttribute(w.stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v);
            }()),
      WRONG("cuThreadExchangeStreamCaptureMode.null", in_context, cuThreadExchangeStreamCaptureMode(nullptr)),
      WRONG("cuThreadExchangeStreamCaptureMode.unknown", in_context,
            [] {
              auto mode = static_cast<CUstreamCaptureMode>(9);
              return cuThreadExchangeStreamCaptureMode(&mode);
            }()),
  };
}

calls event_calls() {
  return {
      WRONG("cuEventCreate.null", in_context, cuEventCreate(nullptr, 0)),
      WRONG("cuEventCreate.flags", in_context, cuEventCreate(&o.event, 0x100)),
      WRONG("cuEventCreate.interprocess_timing", in_context, cuEventCreate(&o.event, CU_EVENT_INTERPROCESS)),
      WRONG("cuEventCreate.none", no_context, cuEventCreate(&o.event, 0)),
      WRONG("cuEventDestroy.null", in_context, cuEventDestroy(nullptr)),
      WRONG("cuEventDestroy.twice", alone, cuEventDestroy(event_gone())),
      WRONG("cuEventRecord.null", in_context, cuEventRecord(nullptr, w.stream)),
      WRONG("cuEventRecord.gone", alone, cuEventRecord(event_gone(), w.stream)),
      WRONG("cuEventRecord.none_default", no_context, cuEventRecord(w.event, nullptr)),
      WRONG("cuEventRecordWithFlags.flags", in_context, cuEventRecordWithFlags(w.event, w.stream, 8)),
      WRONG("cuEventRecordWithFlags.external", in_context,
            cuEventRecordWithFlags(w.event, w.stream, CU_EVENT_RECORD_EXTERNAL)),
      WRONG("cuEventQuery.null", in_context, cuEventQuery(nullptr)),
      WRONG("cuEventQuery.never_recorded", in_context, cuEventQuery(event())),
      WRONG("cuEventQuery.gone", alone, cuEventQuery(event_gone())),
      WRONG("cuEventSynchronize.null", in_context, cuEventSynchronize(nullptr)),
      WRONG("cuEventSynchronize.never_recorded", in_context, cuEventSynchronize(event())),
      WRONG("cuEventSynchronize.gone", alone, cuEventSynchronize(event_gone())),
      WRONG("cuEventElapsedTime.null", in_context, cuEventElapsedTime(nullptr, recorded(), recorded())),
      WRONG("cuEventElapsedTime.null_start", in_context, cuEventElapsedTime(&o.f, nullptr, recorded())),
      WRONG("cuEventElapsedTime.null_end", in_context, cuEventElapsedTime(&o.f, recorded(), nullptr)),
      WRONG("cuEventElapsedTime.never_recorded", in_context, cuEventElapsedTime(&o.f, event(), event())),
      WRONG("cuEventElapsedTime.end_never_recorded", in_context,
            cuEventElapsedTime(&o.f, recorded(), event())),
      WRONG("cuEventElapsedTime.no_timing", in_context,
            cuEventElapsedTime(&o.f, recorded(CU_EVENT_DISABLE_TIMING), recorded(CU_EVENT_DISABLE_TIMING))),
      WRONG_DO("cuEventElapsedTime.not_ready", alone,
               {
                 CUevent first = recorded(), last = event();
                 NEED(cuMemsetD32(w.memory, 0, 1));
                 NEED(cuCtxSynchronize());  // the streams do not wait for the legacy one
                 NEED(cuStreamWaitValue32(w.stream, w.memory, 1, CU_STREAM_WAIT_VALUE_EQ));
                 NEED(cuEventRecord(last, w.stream));
                 const CUresult code = cuEventElapsedTime(&o.f, first, last);
                 NEED(cuStreamWriteValue32(w.other, w.memory, 1, 0));
                 return code;
               }),
      WRONG_DO("cuEventQuery.not_ready", alone,
               {
                 CUevent last = event();
                 NEED(cuMemsetD32(w.memory, 0, 1));
                 NEED(cuCtxSynchronize());  // the streams do not wait for the legacy one
                 NEED(cuStreamWaitValue32(w.stream, w.memory, 1, CU_STREAM_WAIT_VALUE_EQ));
                 NEED(cuEventRecord(last, w.stream));
                 const CUresult code = cuEventQuery(last);
                 NEED(cuStreamWriteValue32(w.other, w.memory, 1, 0));
                 return code;
               }),
      WRONG_DO("cuStreamQuery.not_ready", alone,
               {
                 NEED(cuMemsetD32(w.memory, 0, 1));
                 NEED(cuCtxSynchronize());  // the streams do not wait for the legacy one
                 NEED(cuStreamWaitValue32(w.stream, w.memory, 1, CU_STREAM_WAIT_VALUE_EQ));
                 const CUresult code = cuStreamQuery(w.stream);
                 NEED(cuStreamWriteValue32(w.other, w.memory, 1, 0));
                 return code;
               }),
  };
}

calls stream_memory_calls() {
  return {
      WRONG("cuStreamWriteValue32.null", in_context, cuStreamWriteValue32(w.stream, 0, 1, 0)),
      WRONG("cuStreamWriteValue32.unaligned", in_context, cuStreamWriteValue32(w.stream, w.memory + 1, 1, 0)),
      WRONG("cuStreamWriteValue32.nowhere", in_context,
            cuStreamWriteValue32(w.stream, 0x6'0000'0000'0000ull, 1, 0)),
      WRONG("cuStreamWriteValue32.pageable", in_context,
            cuStreamWriteValue32(w.stream, reinterpret_cast<CUdeviceptr>(host), 1, 0)),
      WRONG("cuStreamWriteValue32.flags", in_context, cuStreamWriteValue32(w.stream, w.memory, 1, 0x80)),
      WRONG("cuStreamWriteValue64.unaligned", in_context, cuStreamWriteValue64(w.stream, w.memory + 4, 1, 0)),
      WRONG("cuStreamWriteValue64.flags", in_context, cuStreamWriteValue64(w.stream, w.memory, 1, 0x80)),
      WRONG("cuStreamWaitValue32.null", in_context,
            cuStreamWaitValue32(w.stream, 0, 0, CU_STREAM_WAIT_VALUE_GEQ)),
      WRONG("cuStreamWaitValue32.unaligned", in_context,
            cuStreamWaitValue32(w.stream, w.memory + 2, 0, CU_STREAM_WAIT_VALUE_GEQ)),
      WRONG("cuStreamWaitValue32.flags", in_context, cuStreamWaitValue32(w.stream, w.memory, 0, 0x80)),
      WRONG("cuStreamWaitValue64.unaligned", in_context,
            cuStreamWaitValue64(w.stream, w.memory + 4, 0, CU_STREAM_WAIT_VALUE_GEQ)),
      WRONG("cuStreamWaitValue64.nowhere", in_context,
            cuStreamWaitValue64(w.stream, 0x6'0000'0000'0000ull, 0, CU_STREAM_WAIT_VALUE_GEQ)),
      WRONG("cuStreamBatchMemOp.null", in_context, cuStreamBatchMemOp(w.stream, 1, nullptr, 0)),
      WRONG("cuStreamBatchMemOp.nothing", in_context, cuStreamBatchMemOp(w.stream, 0, nullptr, 0)),
      WRONG("cuStreamBatchMemOp.operation", in_context,
            [] {
              CUstreamBatchMemOpParams p{};
              p.operation = static_cast<CUstreamBatchMemOpType>(99);
              return cuStreamBatchMemOp(w.stream, 1, &p, 0);
            }()),
      WRONG("cuStreamBatchMemOp.flags", in_context,
            [] {
              CUstreamBatchMemOpParams p{};
              p.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, p.writeValue.address = w.memory;
              return cuStreamBatchMemOp(w.stream, 1, &p, 1);
            }()),
      WRONG("cuStreamBatchMemOp.too_many", in_context,
            [] {
              std::vector<CUstreamBatchMemOpParams> all(257);
              for (auto& p : all)
                p.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, p.writeValue.address = w.memory;
              return cuStreamBatchMemOp(w.stream, 257, all.data(), 0);
            }()),
      WRONG("cuStreamWriteValue32.none_default", no_context, cuStreamWriteValue32(nullptr, w.memory, 1, 0)),
  };
}

}  // namespace wrong_calls
