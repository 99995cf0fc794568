// Shared by driver_corners and gpu_corners: device 0 with its primary context, exact codes, a kernel. With
// the argument "mock" the device computes nothing: then only codes are compared.
#pragma once

#include <cuda.h>

#include <cstring>

#include "common.hh"

inline bool computes = true;
inline CUdevice device = 0;
inline CUcontext context = nullptr;

#define CODE(code, call)                                                                                    \
  do {                                                                                                      \
    if (const int code_result = static_cast<int>(call); code_result != static_cast<int>(code)) {            \
      std::printf("FAIL %s:%d: %s gave %d, not %d\n", __FILE__, __LINE__, #call, code_result, (int)(code)); \
      std::exit(1);                                                                                         \
    }                                                                                                       \
  } while (0)

inline constexpr char store_value[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 to, .param .u32 value) {
  .reg .b32 %r<3>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [to]; ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r1;
  ret;
}
)";

inline CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, bytes));
  MUST(cuMemsetD8(made, 0, bytes));
  MUST(cuCtxSynchronize());  // streams of the programs do not wait for the default one
  return made;
}

inline unsigned word_at(CUdeviceptr at) {
  unsigned value = 0;
  MUST(cuMemcpyDtoH(&value, at, sizeof value));
  return value;
}

inline void begin(int count, char** values) {
  computes = count < 2 || std::strcmp(values[1], "mock") != 0;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
}
