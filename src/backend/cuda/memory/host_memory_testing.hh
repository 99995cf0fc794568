// For tests of the host's memory: a driver of two devices that reserves real addresses and gives them back
// whatever lies there. It counts what it is asked to hold; what it has mapped of devices is a number alone.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "api/cuda/driver_table.hh"

namespace outboard::backend::host_memory_testing {

struct known {
  int held[2] = {0, 0}, current = 0;  ///< primary contexts, and contexts on the stack
  std::vector<void*> locked;
  std::vector<CUdeviceptr> mapped;
  std::uint64_t seen_elsewhere_by = 0;  ///< devices see locked memory so far away from its address
  CUresult unlocking = CUDA_SUCCESS;    ///< what it says when it is to forget locked memory
  CUdeviceptr kept = 0;                 ///< it does not unmap what is there
};
inline known driver_knows;

inline CUresult CUDAAPI reserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  void* got = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *out = reinterpret_cast<CUdeviceptr>(got), CUDA_SUCCESS;
}
inline CUresult CUDAAPI unreserve(CUdeviceptr at, size_t bytes) {
  return ::munmap(reinterpret_cast<void*>(at), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult CUDAAPI map(CUdeviceptr at, size_t, size_t, CUmemGenericAllocationHandle,
                            unsigned long long) {
  return driver_knows.mapped.push_back(at), CUDA_SUCCESS;
}
inline CUresult CUDAAPI unmap(CUdeviceptr at, size_t) {
  if (at == driver_knows.kept) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return std::erase(driver_knows.mapped, at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult CUDAAPI retain(CUcontext* out, CUdevice device) {
  ++driver_knows.held[device];
  *out = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 16);
  return CUDA_SUCCESS;
}
inline CUresult CUDAAPI release(CUdevice device) { return --driver_knows.held[device], CUDA_SUCCESS; }
inline CUresult CUDAAPI push(CUcontext) { return ++driver_knows.current, CUDA_SUCCESS; }
inline CUresult CUDAAPI pop(CUcontext*) { return --driver_knows.current, CUDA_SUCCESS; }
inline CUresult CUDAAPI lock(void* memory, std::size_t, unsigned) {
  EXPECT_EQ(driver_knows.current, 1);
  return driver_knows.locked.push_back(memory), CUDA_SUCCESS;
}
inline CUresult CUDAAPI unlock(void* memory) {
  EXPECT_EQ(driver_knows.current, 1);
  if (driver_knows.unlocking != CUDA_SUCCESS) return driver_knows.unlocking;
  return std::erase(driver_knows.locked, memory) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
inline CUresult CUDAAPI address(CUdeviceptr* out, void* memory, unsigned) {
  *out = reinterpret_cast<std::uintptr_t>(memory) + driver_knows.seen_elsewhere_by;
  return CUDA_SUCCESS;
}

/// One that knows nothing yet.
inline api::driver_table new_driver() {
  driver_knows = {};
  api::driver_table made{};
  made.cuMemAddressReserve = reserve;
  made.cuMemAddressFree = unreserve;
  made.cuMemMap = map;
  made.cuMemUnmap = unmap;
  made.cuDevicePrimaryCtxRetain = retain;
  made.cuDevicePrimaryCtxRelease_v2 = release;
  made.cuCtxPushCurrent_v2 = push;
  made.cuCtxPopCurrent_v2 = pop;
  made.cuMemHostRegister_v2 = lock;
  made.cuMemHostUnregister = unlock;
  made.cuMemHostGetDevicePointer_v2 = address;
  return made;
}

}  // namespace outboard::backend::host_memory_testing
