// Chapter virtual memory, sparse arrays: which memory lies behind which tiles. Arrays and memory are checked
// here, tiles by the driver.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult put_mapping(const lane& own, const CUarrayMapInfo& m, marshal::array_mapping_body& out) {
  std::uint64_t resource = 0;
  if (m.resourceType == CU_RESOURCE_TYPE_ARRAY) {
    resource = find_object<array_info>(own, m.resource.array) ? value_of(m.resource.array) : 0;
  } else if (m.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    resource = find_object<mipmapped_array_info>(own, m.resource.mipmap) ? value_of(m.resource.mipmap) : 0;
  }
  const bool level = m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  const bool tail = m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
  if (!resource || (!level && !tail)) return CUDA_ERROR_INVALID_VALUE;
  const auto& s = m.subresource.sparseLevel;
  const auto& t = m.subresource.miptail;
  const std::uint64_t memory = m.memHandle.memHandle;
  const bool maps = m.memOperationType == CU_MEM_OPERATION_TYPE_MAP;
  if (maps && !own.state().handles[api::handle_kind::allocation].find(memory))
    return CUDA_ERROR_INVALID_VALUE;
  out = {.resource_type = static_cast<std::int32_t>(m.resourceType),
         .array = resource,
         .part = static_cast<std::int32_t>(m.subresourceType),
         .operation = static_cast<std::int32_t>(m.memOperationType),
         .memory_type = static_cast<std::int32_t>(m.memHandleType),
         .memory = maps ? memory : 0,
         .memory_offset = m.offset,
         .devices = m.deviceBitMask,
         .flags = m.flags};
  if (level) {
    out.level = s.level, out.layer = s.layer;
    out.offset = {s.offsetX, s.offsetY, s.offsetZ};
    out.extent = {s.extentWidth, s.extentHeight, s.extentDepth};
  } else {
    out.layer = t.layer, out.tail_offset = t.offset, out.tail_size = t.size;
  }
  return CUDA_SUCCESS;
}

CUresult map_arrays(lane& own, const CUarrayMapInfo* list, unsigned count, CUstream stream, bool per_thread) {
  if (!list || count == 0 || count > marshal::max_array_mappings) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::array_mappings_body body{.stream = value_of(stream), .per_thread = per_thread};
  body.mappings.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult code = put_mapping(own, list[i], body.mappings[i]); code != CUDA_SUCCESS) return code;
  }
  return call<api::opcode::cuMemMapArrayAsync>(own, body);
}

}  // namespace

CUresult ends::cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned count, CUstream stream) {
  lane& own = this_lane();
  return map_arrays(own, list, count, stream, false);
}
CUresult ends::cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned count, CUstream stream) {
  lane& own = this_lane();
  return map_arrays(own, list, count, stream, true);
}

}  // namespace outboard::frontend::cuda
