// Shared by the driver-API programs of this folder: a context, a module from PTX text, a launch, page-locked
// and device memory. Ordinary programs: nothing here knows of Outboard.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "../programs/common.hh"

struct machine {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;

  explicit machine(const char* ptx) {
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
  }
  ~machine() {
    MUST(cuModuleUnload(module));
    MUST(cuDevicePrimaryCtxRelease(device));
  }
  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    MUST(cuModuleGetFunction(&found, module, name));
    return found;
  }
};

template <class... A>
void launch(CUfunction function, std::uint32_t threads, CUstream stream, A... arguments) {
  void* parameters[] = {&arguments...};
  constexpr std::uint32_t block = 128;
  MUST(cuLaunchKernel(function, (threads + block - 1) / block, 1, 1, block, 1, 1, 0, stream, parameters,
                      nullptr));
}

inline CUdeviceptr device_memory(std::size_t bytes) {
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, bytes));
  return made;
}
