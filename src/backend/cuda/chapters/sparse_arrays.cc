// Handlers of sparse arrays and of decompression: lists of numbers into the driver's structs.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::backend {
namespace {

unsigned low(std::uint64_t number) { return static_cast<unsigned>(number); }

CUresult to_mapping(call& c, const std::uint64_t* n, CUarrayMapInfo& m) {
  m = {};
  m.resourceType = static_cast<CUresourcetype>(n[0]);
  const bool array = m.resourceType == CU_RESOURCE_TYPE_ARRAY;
  const CUresult code =
      array ? c.objects().resolve(n[1], m.resource.array) : c.objects().resolve(n[1], m.resource.mipmap);
  if (code != CUDA_SUCCESS) return code;
  m.subresourceType = static_cast<CUarraySparseSubresourceType>(n[2]);
  const std::uint64_t* s = n + 3;
  if (m.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
    m.subresource.sparseLevel = {low(s[0]), low(s[1]), low(s[2]), low(s[3]),
                                 low(s[4]), low(s[5]), low(s[6]), low(s[7])};
  } else {
    m.subresource.miptail = {low(s[0]), s[1], s[2]};
  }
  n += 11;
  m.memOperationType = static_cast<CUmemOperationType>(n[0]);
  m.memHandleType = static_cast<CUmemHandleType>(n[1]);
  m.offset = n[3], m.deviceBitMask = low(n[4]), m.flags = low(n[5]);
  if (n[2] == 0) return CUDA_SUCCESS;
  void* memory = nullptr;
  const CUresult found = c.objects().resolve(api::handle_kind::allocation, n[2], memory);
  m.memHandle.memHandle = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
  return found;
}

/// How many items of `each` numbers the list holds; nothing: it is none.
bool items_of(std::size_t numbers, std::size_t each, std::size_t most, std::size_t& count) {
  count = numbers / each;
  return numbers % each == 0 && count <= most;
}

}  // namespace

namespace ends {

outcome cuMemMapArrayAsync(call& c, const marshal::array_mappings_body& body) {
  std::size_t count = 0;
  if (!items_of(body.numbers.size(), marshal::array_mapping_numbers, marshal::max_array_mappings, count)) {
    return outcome::malformed();
  }
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  std::vector<CUarrayMapInfo> list(count);
  for (std::size_t i = 0; i < count && code == CUDA_SUCCESS; ++i) {
    code = to_mapping(c, body.numbers.data() + i * marshal::array_mapping_numbers, list[i]);
  }
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  return outcome::answer(call_driver(body.per_thread ? d.cuMemMapArrayAsync_ptsz : d.cuMemMapArrayAsync,
                                     list.data(), static_cast<unsigned>(count), stream));
}

outcome cuMemBatchDecompressAsync(call& c, const marshal::decompression_body& body) {
  std::size_t count = 0;
  if (!items_of(body.numbers.size(), marshal::decompression_numbers, marshal::max_decompressions, count)) {
    return outcome::malformed();
  }
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  std::vector<CUmemDecompressParams> list(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t* n = body.numbers.data() + i * marshal::decompression_numbers;
    list[i] = {};
    list[i].srcNumBytes = n[0], list[i].dstNumBytes = n[1];
    list[i].dstActBytes = reinterpret_cast<cuuint32_t*>(n[2]);
    list[i].src = reinterpret_cast<const void*>(n[3]), list[i].dst = reinterpret_cast<void*>(n[4]);
    list[i].algo = static_cast<CUmemDecompressAlgorithm>(n[5]);
  }
  const api::driver_table& d = c.driver();
  std::size_t failed = ~std::size_t{0};
  code = call_driver(body.per_thread ? d.cuMemBatchDecompressAsync_ptsz : d.cuMemBatchDecompressAsync,
                     list.data(), count, body.flags, &failed, stream);
  c.keep_outputs_on_error = true;
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(failed)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
