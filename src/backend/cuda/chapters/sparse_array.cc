// Handlers of sparse arrays and of decompression: lists of what is to be done into the driver's structs.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::backend {
namespace {

CUresult to_mapping(call& c, const marshal::array_mapping_body& from, CUarrayMapInfo& m) {
  m = {};
  m.resourceType = static_cast<CUresourcetype>(from.resource_type);
  const bool array = m.resourceType == CU_RESOURCE_TYPE_ARRAY;
  const CUresult code = array ? c.objects().resolve(from.array, m.resource.array)
                              : c.objects().resolve(from.array, m.resource.mipmap);
  if (code != CUDA_SUCCESS) return code;
  m.subresourceType = static_cast<CUarraySparseSubresourceType>(from.part);
  if (m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
    m.subresource.sparseLevel = {.level = from.level,
                                 .layer = from.layer,
                                 .offsetX = from.offset[0],
                                 .offsetY = from.offset[1],
                                 .offsetZ = from.offset[2],
                                 .extentWidth = from.extent[0],
                                 .extentHeight = from.extent[1],
                                 .extentDepth = from.extent[2]};
  } else {
    m.subresource.miptail = {.layer = from.layer, .offset = from.tail_offset, .size = from.tail_size};
  }
  m.memOperationType = static_cast<CUmemOperationType>(from.operation);
  m.memHandleType = static_cast<CUmemHandleType>(from.memory_type);
  m.offset = from.memory_offset, m.deviceBitMask = from.devices, m.flags = from.flags;
  if (from.memory == 0) return CUDA_SUCCESS;
  void* memory = nullptr;
  const CUresult found = c.objects().resolve(api::handle_kind::allocation, from.memory, memory);
  m.memHandle.memHandle = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
  return found;
}

}  // namespace

namespace ends {

outcome cuMemMapArrayAsync(call& c, const marshal::array_mappings_body& body) {
  if (body.mappings.size() > marshal::max_array_mappings) return outcome::malformed();
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  std::vector<CUarrayMapInfo> list(body.mappings.size());
  for (std::size_t i = 0; i < list.size() && code == CUDA_SUCCESS; ++i) {
    code = to_mapping(c, body.mappings[i], list[i]);
  }
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  return outcome::answer(call_driver(body.per_thread ? d.cuMemMapArrayAsync_ptsz : d.cuMemMapArrayAsync,
                                     list.data(), static_cast<unsigned>(list.size()), stream));
}

outcome cuMemBatchDecompressAsync(call& c, const marshal::decompression_body& body,
                                  std::optional<marshal::value_reply>& reply) {
  if (body.operations.size() > marshal::max_decompressions) return outcome::malformed();
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  std::vector<CUmemDecompressParams> list(body.operations.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const marshal::decompression& from = body.operations[i];
    list[i] = {};
    list[i].srcNumBytes = from.from_size, list[i].dstNumBytes = from.to_size;
    list[i].dstActBytes = reinterpret_cast<cuuint32_t*>(from.written_to);
    list[i].src = reinterpret_cast<const void*>(from.from), list[i].dst = reinterpret_cast<void*>(from.to);
    list[i].algo = static_cast<CUmemDecompressAlgorithm>(from.algorithm);
  }
  const api::driver_table& d = c.driver();
  std::size_t failed = ~std::size_t{0};
  code = call_driver(body.per_thread ? d.cuMemBatchDecompressAsync_ptsz : d.cuMemBatchDecompressAsync,
                     list.data(), list.size(), body.flags, &failed, stream);
  reply = {failed};
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
