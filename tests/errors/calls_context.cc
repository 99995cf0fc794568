// Wrong calls of the chapters contexts and primary contexts.
#include "world.hh"

namespace wrong_calls {

calls context_calls() {
  return {
      WRONG("cuCtxCreate.null", in_context, cuCtxCreate(nullptr, nullptr, 0, w.device)),
      WRONG("cuCtxCreate.device", in_context, cuCtxCreate(&o.context, nullptr, 0, 99)),
      WRONG("cuCtxCreate.flags", in_context, cuCtxCreate(&o.context, nullptr, 0x10000, w.device)),
      WRONG("cuCtxCreate.schedule_flags", in_context, cuCtxCreate(&o.context, nullptr, 7, w.device)),
      WRONG("cuCtxDestroy.null", in_context, cuCtxDestroy(nullptr)),
      WRONG("cuCtxDestroy.primary", alone, cuCtxDestroy(w.context)),
      WRONG_DO("cuCtxSetCurrent.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxSetCurrent(o.context);
               }),
      WRONG_DO("cuCtxPushCurrent.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxPushCurrent(o.context);
               }),
      WRONG_DO("cuCtxSynchronize_v2.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxSynchronize_v2(o.context);
               }),
      WRONG_DO("cuCtxGetApiVersion.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxGetApiVersion(o.context, &o.u);
               }),
      WRONG_DO("cuCtxGetId.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxGetId(o.context, &o.l);
               }),
      WRONG_DO("cuCtxGetDevice_v2.destroyed", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxDestroy(o.context));
                 return cuCtxGetDevice_v2(&o.device, o.context);
               }),
      WRONG_DO("cuCtxGetCurrent.other_destroyed_beneath", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuCtxPushCurrent(w.context));
                 NEED(cuCtxDestroy(o.context));
                 NEED(cuCtxPopCurrent(nullptr));
                 return cuCtxSynchronize();
               }),
      WRONG("cuCtxPushCurrent.null", in_context, cuCtxPushCurrent(nullptr)),
      WRONG("cuCtxPopCurrent.empty", no_context, cuCtxPopCurrent(&o.context)),
      WRONG("cuCtxPopCurrent.empty_null", no_context, cuCtxPopCurrent(nullptr)),
      WRONG_DO("cuCtxPopCurrent.after_set_null", in_context,
               {
                 NEED(cuCtxSetCurrent(nullptr));
                 return cuCtxPopCurrent(&o.context);
               }),
      WRONG_DO("cuCtxPopCurrent.twice", in_context,
               {
                 NEED(cuCtxPopCurrent(&o.context));
                 return cuCtxPopCurrent(&o.context);
               }),
      WRONG("cuCtxGetCurrent.null", in_context, cuCtxGetCurrent(nullptr)),
      WRONG("cuCtxGetDevice.null", in_context, cuCtxGetDevice(nullptr)),
      WRONG("cuCtxGetDevice.none", no_context, cuCtxGetDevice(&o.device)),
      WRONG("cuCtxGetDevice.none_null", no_context, cuCtxGetDevice(nullptr)),
      WRONG("cuCtxGetDevice_v2.none", no_context, cuCtxGetDevice_v2(&o.device, nullptr)),
      WRONG("cuCtxGetDevice_v2.null", in_context, cuCtxGetDevice_v2(nullptr, w.context)),
      WRONG("cuCtxGetFlags.null", in_context, cuCtxGetFlags(nullptr)),
      WRONG("cuCtxGetFlags.none", no_context, cuCtxGetFlags(&o.u)),
      WRONG("cuCtxSetFlags.unknown", in_context, cuCtxSetFlags(0x1000)),
      WRONG("cuCtxSetFlags.schedule", in_context, cuCtxSetFlags(3)),
      WRONG("cuCtxSetFlags.none", no_context, cuCtxSetFlags(0)),
      WRONG("cuCtxGetId.null", in_context, cuCtxGetId(w.context, nullptr)),
      WRONG("cuCtxGetId.none", no_context, cuCtxGetId(nullptr, &o.l)),
      WRONG("cuCtxSynchronize.none", no_context, cuCtxSynchronize()),
      WRONG("cuCtxSynchronize_v2.none", no_context, cuCtxSynchronize_v2(nullptr)),
      WRONG("cuCtxSetLimit.unknown", in_context, cuCtxSetLimit(static_cast<CUlimit>(99), 1)),
      WRONG("cuCtxSetLimit.stack_huge", in_context, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, std::size_t{1} << 40)),
      WRONG("cuCtxSetLimit.fifo_huge", alone, cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{1} << 50)),
      WRONG("cuCtxSetLimit.heap_huge", alone, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{1} << 50)),
      WRONG_DO("cuCtxSetLimit.heap_in_use", alone,
               {
                 NEED(cuLaunchKernel(function_named("nothing"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                                     nullptr));
                 return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20);
               }),
      WRONG("cuCtxSetLimit.sync_depth", in_context, cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1000)),
      WRONG("cuCtxSetLimit.fetch_granularity", in_context,
            cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 4096)),
      WRONG("cuCtxSetLimit.persisting_huge", in_context,
            cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, std::size_t{1} << 40)),
      WRONG("cuCtxSetLimit.none", no_context, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024)),
      WRONG("cuCtxGetLimit.null", in_context, cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE)),
      WRONG("cuCtxGetLimit.unknown", in_context, cuCtxGetLimit(&o.n, static_cast<CUlimit>(99))),
      WRONG("cuCtxGetLimit.none", no_context, cuCtxGetLimit(&o.n, CU_LIMIT_STACK_SIZE)),
      WRONG("cuCtxGetCacheConfig.null", in_context, cuCtxGetCacheConfig(nullptr)),
      WRONG("cuCtxSetCacheConfig.unknown", in_context, cuCtxSetCacheConfig(static_cast<CUfunc_cache>(9))),
      WRONG("cuCtxSetCacheConfig.none", no_context, cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1)),
      WRONG("cuCtxGetApiVersion.null", in_context, cuCtxGetApiVersion(w.context, nullptr)),
      WRONG("cuCtxGetApiVersion.none", no_context, cuCtxGetApiVersion(nullptr, &o.u)),
      WRONG("cuCtxGetStreamPriorityRange.nulls", in_context, cuCtxGetStreamPriorityRange(nullptr, nullptr)),
      WRONG("cuCtxGetStreamPriorityRange.none", no_context, cuCtxGetStreamPriorityRange(&o.i, &o.i2)),
      WRONG("cuCtxResetPersistingL2Cache.none", no_context, cuCtxResetPersistingL2Cache()),
      WRONG_DO("cuCtxGetExecAffinity.null", in_context,
               { return cuCtxGetExecAffinity(nullptr, CU_EXEC_AFFINITY_TYPE_SM_COUNT); }),
      WRONG_DO("cuCtxGetExecAffinity.type", in_context,
               {
                 CUexecAffinityParam affinity{};
                 return cuCtxGetExecAffinity(&affinity, static_cast<CUexecAffinityType>(5));
               }),
      WRONG("cuCtxRecordEvent.null_event", in_context, cuCtxRecordEvent(w.context, nullptr)),
      WRONG("cuCtxRecordEvent.null_context", no_context, cuCtxRecordEvent(nullptr, w.event)),
      WRONG("cuCtxWaitEvent.null_event", in_context, cuCtxWaitEvent(w.context, nullptr)),
      WRONG("cuCtxAttach.flags", in_context, cuCtxAttach(&o.context, 1)),
      WRONG("cuCtxAttach.null", in_context, cuCtxAttach(nullptr, 0)),
      WRONG("cuCtxAttach.none", no_context, cuCtxAttach(&o.context, 0)),
      WRONG("cuCtxDetach.null", in_context, cuCtxDetach(nullptr)),
      WRONG("cuCtxGetSharedMemConfig.null", in_context, cuCtxGetSharedMemConfig(nullptr)),
      WRONG("cuCtxSetSharedMemConfig.unknown", in_context,
            cuCtxSetSharedMemConfig(static_cast<CUsharedconfig>(9))),
      // primary contexts
      WRONG("cuDevicePrimaryCtxRetain.null", in_context, cuDevicePrimaryCtxRetain(nullptr, w.device)),
      WRONG("cuDevicePrimaryCtxRetain.device", in_context, cuDevicePrimaryCtxRetain(&o.context, 99)),
      WRONG("cuDevicePrimaryCtxRelease.device", in_context, cuDevicePrimaryCtxRelease(99)),
      WRONG_DO("cuDevicePrimaryCtxRelease.too_often", alone,
               {
                 NEED(cuDevicePrimaryCtxRelease(w.device));
                 return cuDevicePrimaryCtxRelease(w.device);
               }),
      WRONG_DO("cuDevicePrimaryCtxRelease.then_use", alone,
               {
                 NEED(cuDevicePrimaryCtxRelease(w.device));
                 return cuMemAlloc(&o.d, 64);
               }),
      WRONG_DO("cuDevicePrimaryCtxRelease.then_set_current", alone,
               {
                 NEED(cuDevicePrimaryCtxRelease(w.device));
                 return cuCtxSetCurrent(w.context);
               }),
      WRONG("cuDevicePrimaryCtxSetFlags.unknown", in_context, cuDevicePrimaryCtxSetFlags(w.device, 0x1000)),
      WRONG("cuDevicePrimaryCtxSetFlags.schedule", in_context, cuDevicePrimaryCtxSetFlags(w.device, 3)),
      WRONG("cuDevicePrimaryCtxSetFlags.device", in_context, cuDevicePrimaryCtxSetFlags(99, 0)),
      WRONG("cuDevicePrimaryCtxGetState.nulls", in_context,
            cuDevicePrimaryCtxGetState(w.device, nullptr, nullptr)),
      WRONG("cuDevicePrimaryCtxGetState.null_flags", in_context,
            cuDevicePrimaryCtxGetState(w.device, nullptr, &o.i)),
      WRONG("cuDevicePrimaryCtxGetState.device", in_context, cuDevicePrimaryCtxGetState(99, &o.u, &o.i)),
      WRONG("cuDevicePrimaryCtxReset.device", in_context, cuDevicePrimaryCtxReset(99)),
      WRONG_DO("cuDevicePrimaryCtxReset.twice", alone,
               {
                 NEED(cuDevicePrimaryCtxReset(w.device));
                 return cuDevicePrimaryCtxReset(w.device);
               }),
  };
}

}  // namespace wrong_calls
