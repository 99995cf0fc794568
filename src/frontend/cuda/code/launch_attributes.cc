#include "frontend/cuda/code/launch_attributes.hh"

#include <cstring>

#include "frontend/cuda/requests.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cuda {

CUresult check_attributes(std::span<const CUlaunchAttribute> attributes, launch_shape& shape) {
  if (attributes.size() > marshal::max_launch_attributes) return CUDA_ERROR_INVALID_VALUE;
  for (const CUlaunchAttribute& a : attributes) {
    switch (a.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        shape.cooperative = a.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape.cluster = {a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        if (!find_object<object>(a.value.programmaticEvent.event)) return CUDA_ERROR_INVALID_HANDLE;
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (!find_object<object>(a.value.launchCompletionEvent.event)) return CUDA_ERROR_INVALID_HANDLE;
        break;
      // It returns a node of the graph being captured: not there yet.
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (a.value.deviceUpdatableKernelNode.deviceUpdatable) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

bool odd_attributes(std::span<const CUlaunchAttribute> attributes) {
  for (const CUlaunchAttribute& a : attributes) {
    switch (a.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (!a.value.clusterDim.x || !a.value.clusterDim.y || !a.value.clusterDim.z) return true;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (a.value.clusterSchedulingPolicyPreference > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
          return true;
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        break;
      default:
        return true;
    }
  }
  return false;
}

void put_attributes(wire::writer& w, std::span<const CUlaunchAttribute> attributes) {
  w.put<std::uint64_t>(attributes.size());
  for (const CUlaunchAttribute& a : attributes) {
    marshal::launch_attribute sent{.id = static_cast<std::uint32_t>(a.id)};
    static_assert(sizeof a.value == sizeof sent.value);
    std::memcpy(sent.value.data(), &a.value, sizeof a.value);
    w.put(sent);
  }
}

}  // namespace outboard::frontend::cuda
