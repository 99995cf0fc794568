// The driver's functions that the measuring program calls, found in a library as any program that has no CUDA
// at link time finds them. Owned by the program; the driver's own rules of threads apply. The library is
// never closed.
#pragma once

#include <cuda.h>

#include <string>

#include "base/result.hh"

namespace outboard::bench {

/// X(function) for each.
#define OUTBOARD_BENCH_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDriverGetVersion)             \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease)      \
  X(cuCtxSetCurrent)                \
  X(cuCtxSynchronize)               \
  X(cuStreamCreate)                 \
  X(cuStreamSynchronize)            \
  X(cuEventCreate)                  \
  X(cuEventRecord)                  \
  X(cuEventSynchronize)             \
  X(cuModuleLoadData)               \
  X(cuModuleGetFunction)            \
  X(cuLaunchKernel)                 \
  X(cuMemGetInfo)                   \
  X(cuMemAlloc)                     \
  X(cuMemFree)                      \
  X(cuMemHostAlloc)                 \
  X(cuMemFreeHost)                  \
  X(cuMemcpyHtoD)                   \
  X(cuMemcpyDtoH)                   \
  X(cuMemcpyDtoHAsync)              \
  X(cuGetErrorName)

/// A member of each function's name: the pointer. The header gives some of them a version by a macro, which
/// names member, type and symbol alike.
struct driver {
#define OUTBOARD_BENCH_MEMBER(function) decltype(&::function) function = nullptr;
  OUTBOARD_BENCH_FUNCTIONS(OUTBOARD_BENCH_MEMBER)
#undef OUTBOARD_BENCH_MEMBER
  std::string library;  ///< the file that it came from
  bool ours = false;    ///< Outboard's front-end library
};

/// `library`: a path, or a name for the loader to look up.
result<driver> load_driver(const std::string& library);

/// "CUDA_ERROR_INVALID_VALUE".
std::string name_of(const driver& d, CUresult code);

}  // namespace outboard::bench
