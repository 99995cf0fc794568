// The driver API, opened by dlopen: the same program runs on NVIDIA's driver and through Outboard, and says
// so if there is no driver.
#pragma once

#include <cuda.h>

#include <string>

namespace conformance {

// clang-format off
#define CONFORMANCE_CUDA(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
  X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal) \
  X(cuMemAlloc) X(cuMemFree) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemsetD8) X(cuLaunchKernel) X(cuLaunchCooperativeKernel) \
  X(cuArrayCreate) X(cuArray3DCreate) X(cuArrayDestroy) X(cuMemcpy3D) X(cuMipmappedArrayCreate) X(cuMipmappedArrayGetLevel) \
  X(cuMipmappedArrayDestroy) X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuSurfObjectCreate) X(cuSurfObjectDestroy) \
  X(cuGetErrorName)
// clang-format on

// cuda.h renames some of these to their newer versions (cuMemAlloc is cuMemAlloc_v2); the text form follows
// it.
#define CONFORMANCE_TEXT2(name) #name
#define CONFORMANCE_TEXT(name) CONFORMANCE_TEXT2(name)

struct driver {
#define X(name) decltype(&::name) name = nullptr;
  CONFORMANCE_CUDA(X)
#undef X
  /// Ends the process with a message when there is no driver.
  driver();
  std::string error_name(CUresult code) const;
};

const driver& cuda();

}  // namespace conformance
