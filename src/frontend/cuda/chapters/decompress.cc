// Chapter memory, decompression by the device's own engine: device addresses travel as they are, the driver
// checks that each belongs to memory the engine can use.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

struct decompression {
  const CUmemDecompressParams* list;
  std::size_t count;
  unsigned flags;
  std::size_t* failed;
  CUstream stream;
  bool per_thread;
};

CUresult decompress(lane& own, const decompression& d) {
  const auto& facts = own.state().devices.facts_of(own.current()->device);
  if (attribute_value(facts, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK) == 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (d.failed) *d.failed = ~std::size_t{0};
  if (!d.list || d.count == 0 || d.count > marshal::max_decompressions) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, d.stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::decompression_body body{
      .stream = value_of(d.stream), .flags = d.flags, .per_thread = d.per_thread};
  body.operations.reserve(d.count);
  for (std::size_t i = 0; i < d.count; ++i) {
    const CUmemDecompressParams& p = d.list[i];
    body.operations.push_back({.from = value_of(p.src),
                               .from_size = p.srcNumBytes,
                               .to = value_of(p.dst),
                               .to_size = p.dstNumBytes,
                               .written_to = value_of(p.dstActBytes),
                               .algorithm = static_cast<std::int32_t>(p.algo)});
  }
  std::optional<marshal::value_reply> failed;
  const CUresult code = call<api::opcode::cuMemBatchDecompressAsync>(own, body, failed);
  if (d.failed && failed) *d.failed = failed->value;
  return code;
}

}  // namespace

CUresult ends::cuMemBatchDecompressAsync(CUmemDecompressParams* list, size_t count, unsigned flags,
                                         size_t* failed, CUstream stream) {
  lane& own = this_lane();
  return decompress(own, {list, count, flags, failed, stream, false});
}
CUresult ends::cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams* list, size_t count, unsigned flags,
                                              size_t* failed, CUstream stream) {
  lane& own = this_lane();
  return decompress(own, {list, count, flags, failed, stream, true});
}

}  // namespace outboard::frontend::cuda
