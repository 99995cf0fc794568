// cuda.h as the driver itself sees it: no renaming macros, every old version and every
// per-thread-default-stream entry declared. Include this and never <cuda.h> itself, because otherwise a name
// would mean two things in one program.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR  // keeps the enums as programs see them
// A device's addresses have 64 bits, also in a 32-bit client, which has no CUDA but uses the tables. cuda.h
// would give it 32 bits; the headers that cuda.h includes must not be affected.
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

namespace outboard::api {

/// The CUDA release whose functions the tables list. Headers of another one may know more or fewer functions;
/// the audit test says which.
inline constexpr int described_version = 13000;

}  // namespace outboard::api
