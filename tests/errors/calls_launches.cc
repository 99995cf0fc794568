// Wrong calls of the chapters execution control (launches) and occupancy.
#include "world.hh"

namespace wrong_calls {

namespace {

struct shape {
  unsigned gx = 1, gy = 1, gz = 1, bx = 1, by = 1, bz = 1, shared = 0;
};

CUresult launch(CUfunction f, shape s = {}, CUstream stream = w.stream) {
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchKernel(f, s.gx, s.gy, s.gz, s.bx, s.by, s.bz, s.shared, stream, parameters, nullptr);
}
CUresult launch_together(CUfunction f, shape s = {}) {
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchCooperativeKernel(f, s.gx, s.gy, s.gz, s.bx, s.by, s.bz, s.shared, w.stream, parameters);
}
template <class Change>
CUresult launch_with(CUlaunchAttributeID id, Change change, shape s = {}) {
  CUlaunchAttribute a{};
  a.id = id;
  change(a.value);
  CUlaunchConfig c{};
  c.gridDimX = s.gx, c.gridDimY = s.gy, c.gridDimZ = s.gz;
  c.blockDimX = s.bx, c.blockDimY = s.by, c.blockDimZ = s.bz;
  c.sharedMemBytes = s.shared, c.hStream = w.stream, c.attrs = &a, c.numAttrs = 1;
  CUdeviceptr address = w.memory;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  return cuLaunchKernelEx(&c, w.function, parameters, nullptr);
}
CUresult launch_packed(std::size_t bytes) {
  struct {
    CUdeviceptr address;
    unsigned value;
  } packed{w.memory, 1};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, extra);
}
CUlaunchConfig cluster_of(CUlaunchAttribute& a, unsigned x, unsigned blocks = 8) {
  a = {};
  a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  a.value.clusterDim.x = x, a.value.clusterDim.y = a.value.clusterDim.z = 1;
  CUlaunchConfig c{};
  c.gridDimX = blocks, c.gridDimY = c.gridDimZ = 1, c.blockDimX = 32, c.blockDimY = c.blockDimZ = 1;
  c.attrs = &a, c.numAttrs = 1;
  return c;
}

}  // namespace

calls launch_calls() {
  return {
      WRONG("cuLaunchKernel.null", in_context, launch(nullptr)),
      WRONG("cuLaunchKernel.no_threads", in_context, launch(w.function, {.bx = 0})),
      WRONG("cuLaunchKernel.no_threads_y", in_context, launch(w.function, {.by = 0})),
      WRONG("cuLaunchKernel.no_blocks", in_context, launch(w.function, {.gx = 0})),
      WRONG("cuLaunchKernel.no_blocks_z", in_context, launch(w.function, {.gz = 0})),
      WRONG("cuLaunchKernel.threads", in_context, launch(w.function, {.bx = 1025})),
      WRONG("cuLaunchKernel.threads_in_all", in_context, launch(w.function, {.bx = 64, .by = 64})),
      WRONG("cuLaunchKernel.threads_z", in_context, launch(w.function, {.bz = 65})),
      WRONG("cuLaunchKernel.blocks_x", in_context, launch(w.function, {.gx = 0x80000000u})),
      WRONG("cuLaunchKernel.blocks_y", in_context, launch(w.function, {.gy = 65536})),
      WRONG("cuLaunchKernel.blocks_z", in_context, launch(w.function, {.gz = 65536})),
      WRONG("cuLaunchKernel.shared", in_context, launch(w.function, {.shared = 1 << 20})),
      WRONG("cuLaunchKernel.shared_not_asked_for", in_context, launch(w.function, {.shared = 60 << 10})),
      WRONG("cuLaunchKernel.shared_with_static", in_context,
            launch(function_named("much"), {.shared = 16 << 10})),
      WRONG("cuLaunchKernel.more_than_maxntid", in_context, launch(function_named("few"), {.bx = 128})),
      WRONG("cuLaunchKernel.not_reqntid", in_context, launch(function_named("exactly"), {.bx = 32})),
      WRONG("cuLaunchKernel.no_parameters", in_context,
            cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, nullptr)),
      WRONG_DO("cuLaunchKernel.both_forms", in_context,
               {
                 CUdeviceptr address = w.memory;
                 unsigned value = 1;
                 void* parameters[] = {&address, &value};
                 void* extra[] = {CU_LAUNCH_PARAM_END};
                 return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, parameters, extra);
               }),
      WRONG("cuLaunchKernel.packed_too_small", in_context, launch_packed(8)),
      WRONG("cuLaunchKernel.packed_empty", in_context, launch_packed(0)),
      WRONG("cuLaunchKernel.packed_large", in_context, launch_packed(64 << 10)),
      WRONG_DO("cuLaunchKernel.packed_without_size", in_context,
               {
                 void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, host, CU_LAUNCH_PARAM_END};
                 return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, extra);
               }),
      WRONG_DO("cuLaunchKernel.packed_nothing", in_context,
               {
                 void* extra[] = {CU_LAUNCH_PARAM_END};
                 return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, extra);
               }),
      WRONG_DO("cuLaunchKernel.packed_unknown_word", in_context,
               {
                 void* extra[] = {reinterpret_cast<void*>(77), host, CU_LAUNCH_PARAM_END};
                 return cuLaunchKernel(w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, extra);
               }),
      WRONG("cuLaunchKernel.none_default", no_context, launch(w.function, {}, nullptr)),
      WRONG("cuLaunchKernel.none_kernel_default", no_context,
            launch(reinterpret_cast<CUfunction>(w.kernel), {}, nullptr)),
      WRONG_DO("cuLaunchKernel.unloaded", alone,
               {
                 NEED(cuModuleLoadData(&o.module, text_of_module));
                 NEED(cuModuleGetFunction(&o.function, o.module, "store"));
                 NEED(cuModuleUnload(o.module));
                 return launch(o.function);
               }),
      WRONG_DO("cuLaunchKernel.library_unloaded", alone,
               {
                 NEED(
                     cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 0));
                 NEED(cuLibraryGetKernel(&o.kernel, o.library, "store"));
                 NEED(cuLibraryUnload(o.library));
                 return launch(reinterpret_cast<CUfunction>(o.kernel));
               }),
      WRONG_DO("cuLaunchKernel.another_context", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 return launch(w.function, {}, nullptr);
               }),
      WRONG_DO("cuLaunchKernel.stream_of_another_context", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuStreamCreate(&o.stream, 0));
                 NEED(cuCtxSetCurrent(w.context));
                 return launch(w.function, {}, o.stream);
               }),
      WRONG_DO("cuEventRecord.event_of_another_context", alone,
               {
                 NEED(cuCtxCreate(&o.context, nullptr, 0, w.device));
                 NEED(cuEventCreate(&o.event, 0));
                 NEED(cuCtxSetCurrent(w.context));
                 return cuEventRecord(o.event, w.stream);
               }),
      WRONG("cuLaunchKernel.traps", alone, launch(function_named("traps"))),
      WRONG("cuLaunchKernel.wild", alone, launch(function_named("wild"))),
      WRONG_DO("cuStreamSynchronize.trapped", alone,
               {
                 NEED(launch(function_named("traps")));
                 return cuStreamSynchronize(w.stream);
               }),
      WRONG_DO("cuMemcpyDtoH.trapped", alone,
               {
                 NEED(launch(function_named("traps")));
                 return cuMemcpyDtoH(host, w.memory, 64);
               }),
      WRONG_DO("cuEventSynchronize.wild", alone,
               {
                 NEED(launch(function_named("wild")));
                 NEED(cuEventRecord(w.event, w.stream));
                 return cuEventSynchronize(w.event);
               }),
      // with attributes
      WRONG("cuLaunchKernelEx.null", in_context, cuLaunchKernelEx(nullptr, w.function, nullptr, nullptr)),
      WRONG("cuLaunchKernelEx.unknown_attribute", in_context,
            launch_with(static_cast<CUlaunchAttributeID>(99), [](auto&) {})),
      WRONG("cuLaunchKernelEx.cluster_does_not_divide", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                        [](auto& v) { v.clusterDim.x = 2, v.clusterDim.y = v.clusterDim.z = 1; }, {.gx = 3})),
      WRONG("cuLaunchKernelEx.cluster_zero", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                        [](auto& v) { v.clusterDim.x = 0, v.clusterDim.y = v.clusterDim.z = 1; })),
      WRONG(
          "cuLaunchKernelEx.cluster_large", in_context,
          launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                      [](auto& v) { v.clusterDim.x = 64, v.clusterDim.y = v.clusterDim.z = 1; }, {.gx = 64})),
      WRONG(
          "cuLaunchKernelEx.cluster_nonportable", in_context,
          launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                      [](auto& v) { v.clusterDim.x = 16, v.clusterDim.y = v.clusterDim.z = 1; }, {.gx = 16})),
      WRONG("cuLaunchKernelEx.cluster_policy", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                        [](auto& v) {
                          v.clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(9);
                        })),
      WRONG(
          "cuLaunchKernelEx.cooperative_too_many", in_context,
          launch_with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [](auto& v) { v.cooperative = 1; }, {.gx = 1 << 20})),
      WRONG("cuLaunchKernelEx.event_null", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                        [](auto& v) { v.programmaticEvent.event = nullptr; })),
      WRONG("cuLaunchKernelEx.completion_event_null", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                        [](auto& v) { v.launchCompletionEvent.event = nullptr; })),
      WRONG("cuLaunchKernelEx.policy_of_streams", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                        [](auto& v) { v.syncPolicy = CU_SYNC_POLICY_SPIN; })),
      WRONG("cuLaunchKernelEx.threads", in_context,
            launch_with(CU_LAUNCH_ATTRIBUTE_PRIORITY, [](auto& v) { v.priority = 0; }, {.bx = 2048})),
      WRONG_DO("cuLaunchKernelEx.null_attributes", in_context,
               {
                 CUlaunchConfig c{};
                 c.gridDimX = c.gridDimY = c.gridDimZ = c.blockDimX = c.blockDimY = c.blockDimZ = 1;
                 c.numAttrs = 1;
                 return cuLaunchKernelEx(&c, function_named("nothing"), nullptr, nullptr);
               }),
      WRONG("cuLaunchCooperativeKernel.too_many", in_context, launch_together(w.function, {.gx = 1 << 20})),
      WRONG("cuLaunchCooperativeKernel.threads", in_context, launch_together(w.function, {.bx = 2048})),
      WRONG("cuLaunchCooperativeKernel.null", in_context, launch_together(nullptr)),
      WRONG("cuLaunchCooperativeKernelMultiDevice.null", in_context,
            cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0)),
      WRONG("cuLaunchCooperativeKernelMultiDevice.none", in_context,
            cuLaunchCooperativeKernelMultiDevice(nullptr, 0, 0)),
      // long forgotten
      WRONG("cuFuncSetBlockShape.null", in_context, cuFuncSetBlockShape(nullptr, 1, 1, 1)),
      WRONG("cuFuncSetBlockShape.zero", in_context, cuFuncSetBlockShape(w.function, 0, 1, 1)),
      WRONG("cuFuncSetBlockShape.large", in_context, cuFuncSetBlockShape(w.function, 2048, 1, 1)),
      WRONG("cuFuncSetSharedSize.large", in_context, cuFuncSetSharedSize(w.function, 1 << 30)),
      WRONG("cuParamSetSize.large", in_context, cuParamSetSize(w.function, 1 << 20)),
      WRONG("cuParamSeti.null", in_context, cuParamSeti(nullptr, 0, 0)),
      WRONG("cuParamSetv.null", in_context, cuParamSetv(w.function, 0, nullptr, 4)),
      WRONG("cuLaunch.null", in_context, cuLaunch(nullptr)),
      WRONG("cuLaunchGrid.zero", in_context, cuLaunchGrid(w.function, 0, 1)),
  };
}

calls occupancy_calls() {
  return {
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.null", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, w.function, 32, 0)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.null_function", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, nullptr, 32, 0)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.no_threads", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, 0, 0)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.negative", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, -1, 0)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.threads", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, 2048, 0)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.shared", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, 32, 1 << 24)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags.flags", in_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&o.i, w.function, 32, 0, 8)),
      WRONG("cuOccupancyMaxActiveBlocksPerMultiprocessor.none", no_context,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&o.i, w.function, 32, 0)),
      WRONG("cuOccupancyMaxPotentialBlockSize.nulls", in_context,
            cuOccupancyMaxPotentialBlockSize(nullptr, nullptr, w.function, nullptr, 0, 0)),
      WRONG("cuOccupancyMaxPotentialBlockSize.null_function", in_context,
            cuOccupancyMaxPotentialBlockSize(&o.i, &o.i2, nullptr, nullptr, 0, 0)),
      WRONG("cuOccupancyMaxPotentialBlockSize.shared", in_context,
            cuOccupancyMaxPotentialBlockSize(&o.i, &o.i2, w.function, nullptr, 1 << 24, 0)),
      WRONG("cuOccupancyMaxPotentialBlockSize.limit_negative", in_context,
            cuOccupancyMaxPotentialBlockSize(&o.i, &o.i2, w.function, nullptr, 0, -1)),
      WRONG("cuOccupancyMaxPotentialBlockSizeWithFlags.flags", in_context,
            cuOccupancyMaxPotentialBlockSizeWithFlags(&o.i, &o.i2, w.function, nullptr, 0, 0, 8)),
      WRONG("cuOccupancyAvailableDynamicSMemPerBlock.null", in_context,
            cuOccupancyAvailableDynamicSMemPerBlock(nullptr, w.function, 1, 32)),
      WRONG("cuOccupancyAvailableDynamicSMemPerBlock.no_blocks", in_context,
            cuOccupancyAvailableDynamicSMemPerBlock(&o.n, w.function, 0, 32)),
      WRONG("cuOccupancyAvailableDynamicSMemPerBlock.blocks", in_context,
            cuOccupancyAvailableDynamicSMemPerBlock(&o.n, w.function, 1000, 32)),
      WRONG("cuOccupancyAvailableDynamicSMemPerBlock.threads", in_context,
            cuOccupancyAvailableDynamicSMemPerBlock(&o.n, w.function, 1, 4096)),
      WRONG("cuOccupancyAvailableDynamicSMemPerBlock.null_function", in_context,
            cuOccupancyAvailableDynamicSMemPerBlock(&o.n, nullptr, 1, 32)),
      WRONG("cuOccupancyMaxActiveClusters.null", in_context,
            cuOccupancyMaxActiveClusters(&o.i, w.function, nullptr)),
      WRONG("cuOccupancyMaxActiveClusters.null_output", in_context,
            [] {
              CUlaunchAttribute a;
              auto c = cluster_of(a, 2);
              return cuOccupancyMaxActiveClusters(nullptr, w.function, &c);
            }()),
      WRONG("cuOccupancyMaxActiveClusters.does_not_divide", in_context,
            [] {
              CUlaunchAttribute a;
              auto c = cluster_of(a, 3);
              return cuOccupancyMaxActiveClusters(&o.i, w.function, &c);
            }()),
      WRONG("cuOccupancyMaxActiveClusters.large", in_context,
            [] {
              CUlaunchAttribute a;
              auto c = cluster_of(a, 64, 64);
              return cuOccupancyMaxActiveClusters(&o.i, w.function, &c);
            }()),
      WRONG("cuOccupancyMaxPotentialClusterSize.null", in_context,
            cuOccupancyMaxPotentialClusterSize(&o.i, w.function, nullptr)),
      WRONG("cuOccupancyMaxPotentialClusterSize.null_function", in_context,
            [] {
              CUlaunchAttribute a;
              auto c = cluster_of(a, 2);
              return cuOccupancyMaxPotentialClusterSize(&o.i, nullptr, &c);
            }()),
  };
}

}  // namespace wrong_calls
