#include "frontend/cuda/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/remote.hh"
#include "marshal/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult allocate(lane& own, CUdeviceptr* address, std::size_t size, CUstream stream, bool per_thread) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  request r(api::opcode::cuMemAllocAsync, own);
  marshal::put_body(r.body(), marshal::pool_body{size, 0, value_of(stream), per_thread});
  std::uint64_t made = 0;
  if (const CUresult code = take(r, r.call(), made); code != CUDA_SUCCESS) return code;
  if (!any_capture_open()) {  // a captured allocation's address belongs to its graph
    memory_block block;
    block.base = made;
    block.size = size;
    block.kind = memory_kind::pool;
    block.context = own.context_handle();
    block.device = own.current()->device;
    if (const CUresult code = process::instance().insert_foreign(block); code != CUDA_SUCCESS) return code;
  }
  *address = made;
  return CUDA_SUCCESS;
}

CUresult release(lane& own, CUdeviceptr address, CUstream stream, bool per_thread) {
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  address_table& addresses = process::instance().addresses();
  const auto block = addresses.find(address);
  const bool ours = block && block->base == address && !is_host(block->kind);
  if (ours && block->kind == memory_kind::device) {
    // cuMemAlloc's memory is none of the driver's pools here: freed once the stream has come to it.
    const CUresult code = per_thread ? remote<api::opcode::cuStreamSynchronize_ptsz>(stream)
                                     : remote<api::opcode::cuStreamSynchronize>(stream);
    return code == CUDA_SUCCESS ? ends::cuMemFree_v2(address) : code;
  }
  request r(api::opcode::cuMemFreeAsync, own);
  marshal::put_body(r.body(), marshal::pool_body{0, address, value_of(stream), per_thread});
  if (!ours || block->kind != memory_kind::pool || any_capture_open()) return r.call();
  addresses.remove(address);
  return r.post();
}

}  // namespace

namespace ends {

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocAsync>(own);
  return code == CUDA_SUCCESS ? allocate(own, address, size, stream, false) : code;
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, std::size_t size, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemAllocAsync_ptsz>(own);
  return code == CUDA_SUCCESS ? allocate(own, address, size, stream, true) : code;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemFreeAsync>(own);
  return code == CUDA_SUCCESS ? release(own, address, stream, false) : code;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuMemFreeAsync_ptsz>(own);
  return code == CUDA_SUCCESS ? release(own, address, stream, true) : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
