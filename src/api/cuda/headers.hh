// cuda.h as the driver itself sees it: no renaming macros, every old version and every
// per-thread-default-stream entry declared. Include this and never <cuda.h> itself, else a name means two
// things in one program.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR  // keeps the enums as programs see them
#include <cuda.h>
#include <cudaProfiler.h>
