// Chapter memory, decompression by the device's own engine: device addresses travel as they are, the driver
// checks that each belongs to memory the engine can use.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
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
  const auto& facts = process::instance().facts().devices[static_cast<std::size_t>(own.current()->device)];
  if (facts.attributes[CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK].value == 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (d.failed) *d.failed = ~std::size_t{0};
  if (!d.list || d.count == 0 || d.count > marshal::max_decompressions) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(d.stream)) return CUDA_ERROR_INVALID_HANDLE;
  marshal::decompression_body body{value_of(d.stream), d.flags, d.per_thread, {}};
  body.numbers.reserve(d.count * marshal::decompression_numbers);
  for (std::size_t i = 0; i < d.count; ++i) {
    const CUmemDecompressParams& p = d.list[i];
    body.numbers.insert(body.numbers.end(),
                        {p.srcNumBytes, p.dstNumBytes, value_of(p.dstActBytes), value_of(p.src),
                         value_of(p.dst), static_cast<std::uint64_t>(p.algo)});
  }
  request_of<api::opcode::cuMemBatchDecompressAsync> r(own, body);
  const CUresult code = r.call();
  const auto failed = r.whole_reply();
  if (!failed) return code == CUDA_SUCCESS ? r.malformed() : code;
  if (d.failed) *d.failed = static_cast<std::size_t>(failed->value);
  return code;
}

}  // namespace

CUresult ends::cuMemBatchDecompressAsync(CUmemDecompressParams* list, size_t count, unsigned flags,
                                         size_t* failed, CUstream stream) {
  lane& own = this_lane();
  const CUresult refused = gate<api::opcode::cuMemBatchDecompressAsync>(own);
  return refused == CUDA_SUCCESS ? decompress(own, {list, count, flags, failed, stream, false}) : refused;
}
CUresult ends::cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams* list, size_t count, unsigned flags,
                                              size_t* failed, CUstream stream) {
  lane& own = this_lane();
  const CUresult refused = gate<api::opcode::cuMemBatchDecompressAsync_ptsz>(own);
  return refused == CUDA_SUCCESS ? decompress(own, {list, count, flags, failed, stream, true}) : refused;
}

}  // namespace outboard::frontend::cuda
