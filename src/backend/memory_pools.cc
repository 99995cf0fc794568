#include "backend/ends.hh"
#include "backend/session_core.hh"

namespace outboard::backend::ends {

outcome cuMemAllocAsync(call& c) {
  marshal::pool_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto entry = body.per_thread ? c.driver().cuMemAllocAsync_ptsz : c.driver().cuMemAllocAsync;
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUstream stream = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, stream); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  CUdeviceptr address = 0;
  const CUresult code = entry(&address, body.size, stream);
  if (code == CUDA_SUCCESS) c.session.memory().pool_allocated(address, body.size);
  marshal::put_body(c.reply, marshal::address_reply{address});
  return outcome::answer(code);
}

outcome cuMemFreeAsync(call& c) {
  marshal::pool_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto entry = body.per_thread ? c.driver().cuMemFreeAsync_ptsz : c.driver().cuMemFreeAsync;
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUstream stream = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, stream); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  const CUresult code = entry(body.address, stream);
  if (code == CUDA_SUCCESS) c.session.memory().pool_freed(body.address);
  return outcome::answer(code);
}

}  // namespace outboard::backend::ends
