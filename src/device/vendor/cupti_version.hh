// Which versions of CUPTI have records that are read here: those whose structs CUPTI's headers have, and
// later ones of the same CUDA, which NVIDIA lets grow at their ends only. Any thread.
#pragma once

#include "api/cuda/cupti_headers.hh"

#ifdef OUTBOARD_HAS_CUPTI_HEADERS

#include <cstddef>
#include <cstdint>
#include <string>

namespace outboard::device::vendor {

/// The major version of CUDA that a CUPTI belongs to; `version`: as cuptiGetVersion says it. cupti_version.h
/// has the list: 19 is that of CUDA 12.0, and since CUDA 13 it has six digits.
constexpr std::uint32_t cuda_of_cupti(std::uint32_t version) {
  if (version >= 130000) return version / 10000;
  return version >= 19 && version < 100 ? 12 : version < 19 ? 11 : 0;
}

constexpr std::uint32_t oldest_known_cuda = 12, newest_known_cuda = cuda_of_cupti(CUPTI_API_VERSION);

constexpr bool cupti_is_known(std::uint32_t version) {
  const std::uint32_t cuda = cuda_of_cupti(version);
  return cuda >= oldest_known_cuda && cuda <= newest_known_cuda;
}

inline std::string unknown_cupti(const std::string& path, std::uint32_t version) {
  const auto text = [](std::uint32_t number) { return std::to_string(number); };
  return "the server's CUPTI " + path + " says that it is of version " + text(version) +
         ", and records of CUDA " + text(oldest_known_cuda) + " to " + text(newest_known_cuda) +
         " alone are read here: put the libcupti.so." + text(newest_known_cuda) +
         " of such a toolkit before it (LD_LIBRARY_PATH of outboard serve)";
}

// What is read of records of CUDA 13 (see cupti.cc) lies where CUDA 12.0's have it.
#define SAME_PLACE(older, newer, field)                             \
  static_assert(offsetof(older, field) == offsetof(newer, field) && \
                sizeof(older::field) == sizeof(newer::field));
#define SAME_KERNEL(field) SAME_PLACE(CUpti_ActivityKernel9, CUpti_ActivityKernel10, field)
SAME_KERNEL(kind)
SAME_KERNEL(registersPerThread)
SAME_KERNEL(start)
SAME_KERNEL(end)
SAME_KERNEL(deviceId)
SAME_KERNEL(contextId)
SAME_KERNEL(streamId)
SAME_KERNEL(gridX)
SAME_KERNEL(blockZ)
SAME_KERNEL(staticSharedMemory)
SAME_KERNEL(dynamicSharedMemory)
SAME_KERNEL(localMemoryPerThread)
SAME_KERNEL(localMemoryTotal)
SAME_KERNEL(correlationId)
SAME_KERNEL(name)
SAME_KERNEL(sharedMemoryExecuted)
SAME_KERNEL(graphNodeId)
SAME_KERNEL(graphId)
SAME_KERNEL(channelID)
SAME_KERNEL(channelType)
SAME_KERNEL(clusterX)
SAME_KERNEL(clusterZ)
#undef SAME_KERNEL
#define SAME_COPY(field) SAME_PLACE(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, field)
SAME_COPY(srcKind)
SAME_COPY(dstKind)
SAME_COPY(bytes)
SAME_COPY(start)
SAME_COPY(end)
SAME_COPY(deviceId)
SAME_COPY(contextId)
SAME_COPY(streamId)
SAME_COPY(correlationId)
SAME_COPY(graphNodeId)
SAME_COPY(graphId)
SAME_COPY(channelID)
SAME_COPY(channelType)
#undef SAME_COPY
#undef SAME_PLACE

}  // namespace outboard::device::vendor

#endif
