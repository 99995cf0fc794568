// Chapter virtual memory, sparse arrays: which memory lies behind which tiles. Arrays and memory are checked
// here, tiles by the driver.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// The numbers of one mapping, in the order of marshal::array_mapping_numbers.
CUresult put_mapping(const CUarrayMapInfo& m, std::vector<std::uint64_t>& numbers) {
  std::uint64_t resource = 0;
  if (m.resourceType == CU_RESOURCE_TYPE_ARRAY) {
    resource = find_object<array_info>(m.resource.array) ? value_of(m.resource.array) : 0;
  } else if (m.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
    resource = find_object<mipmapped_array_info>(m.resource.mipmap) ? value_of(m.resource.mipmap) : 0;
  }
  const bool level = m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
  const bool tail = m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
  if (!resource || (!level && !tail)) return CUDA_ERROR_INVALID_VALUE;
  const auto& s = m.subresource.sparseLevel;
  const auto& t = m.subresource.miptail;
  const std::uint64_t memory = m.memHandle.memHandle;
  const bool maps = m.memOperationType == CU_MEM_OPERATION_TYPE_MAP;
  if (maps && !process::instance().objects().handles(api::handle_kind::allocation).find(memory))
    return CUDA_ERROR_INVALID_VALUE;
  numbers.insert(numbers.end(), {static_cast<std::uint64_t>(m.resourceType), resource,
                                 static_cast<std::uint64_t>(m.subresourceType)});
  if (level) {
    numbers.insert(numbers.end(), {s.level, s.layer, s.offsetX, s.offsetY, s.offsetZ, s.extentWidth,
                                   s.extentHeight, s.extentDepth});
  } else {
    numbers.insert(numbers.end(), {t.layer, t.offset, t.size, 0, 0, 0, 0, 0});
  }
  numbers.insert(numbers.end(),
                 {static_cast<std::uint64_t>(m.memOperationType), static_cast<std::uint64_t>(m.memHandleType),
                  maps ? memory : 0, m.offset, m.deviceBitMask, m.flags});
  return CUDA_SUCCESS;
}

CUresult map_arrays(lane& own, const CUarrayMapInfo* list, unsigned count, CUstream stream, bool per_thread) {
  if (!list || count == 0 || count > marshal::max_array_mappings) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::array_mappings_body body{value_of(stream), per_thread, {}};
  body.numbers.reserve(count * marshal::array_mapping_numbers);
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult code = put_mapping(list[i], body.numbers); code != CUDA_SUCCESS) return code;
  }
  request_of<api::opcode::cuMemMapArrayAsync> r(own, body);
  return r.call();
}

}  // namespace

CUresult ends::cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned count, CUstream stream) {
  lane& own = this_lane();
  const CUresult refused = gate<api::opcode::cuMemMapArrayAsync>(own);
  return refused == CUDA_SUCCESS ? map_arrays(own, list, count, stream, false) : refused;
}
CUresult ends::cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned count, CUstream stream) {
  lane& own = this_lane();
  const CUresult refused = gate<api::opcode::cuMemMapArrayAsync_ptsz>(own);
  return refused == CUDA_SUCCESS ? map_arrays(own, list, count, stream, true) : refused;
}

}  // namespace outboard::frontend::cuda
