// Physical memory that goes from one process to another as a file descriptor. After <cuda.h>; ends the
// program when a call fails.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common.hh"

constexpr auto by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr std::size_t block_size = 4 << 20;

inline void* as_handle(int fd) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)); }

/// Of memory of device 0.
inline CUmemAllocationProp properties(CUmemAllocationHandleType types = by_descriptor) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.requestedHandleTypes = types;
  return p;
}

/// At this address, which is reserved, or anywhere (0); for device 0.
inline CUdeviceptr map_at(CUdeviceptr at, CUmemGenericAllocationHandle block) {
  if (at == 0) MUST(cuMemAddressReserve(&at, block_size, 0, 0, 0));
  MUST(cuMemMap(at, block_size, 0, block, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemSetAccess(at, block_size, &access, 1));
  return at;
}

inline unsigned word_at(CUdeviceptr at) {
  unsigned value = 0;
  MUST(cuMemcpyDtoH(&value, at, sizeof value));
  return value;
}
