// cuda.h as the driver itself sees it: no renaming macros, every old version and every
// per-thread-default-stream entry declared. Include this and never <cuda.h> itself, else a name means two
// things in one program.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR  // keeps the enums as programs see them
// A device's addresses have 64 bits, also for a client of 32 bits: such a client has no CUDA, but the tables.
// cuda.h would give it 32; the headers that it includes itself must not be misled.
#if !defined(__LP64__)
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#define __LP64__
#include <cuda.h>
#undef __LP64__
#endif
#include <cuda.h>
#include <cudaProfiler.h>
