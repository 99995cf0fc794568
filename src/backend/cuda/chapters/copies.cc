// Handlers of copies between host and device memory in a row. Bytes from the client go through a staging
// block, so the request is done when they are copied there; bytes to the client are an outgoing_copy.
#include <cstring>

#include "backend/cuda/copying/copy_order.hh"
#include "backend/cuda/copying/outgoing_copy.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/relaxed_capture.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

/// The driver takes an address that it does not know for pageable memory: here that would be the worker's
/// own.
bool device_knows(const api::driver_table& d, CUdeviceptr address, unsigned& type) {
  return call_driver(d.cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
         CUDA_ERROR_INVALID_VALUE;
}

/// A driver (580: 1 to 4,096 bytes, not 65,536) reads a page-locked source in the call where the legacy
/// stream itself has nothing to do, though other streams that this one waits for have still to write there.
/// It does not behind a record in that stream.
void keep_order(call& c, CUstream stream, marshal::flavour how, std::uint64_t size, unsigned to,
                unsigned from) {
  constexpr std::uint64_t read_in_order = 64u << 10;
  const bool legacy = !marshal::per_thread(how) && (stream == nullptr || stream == CU_STREAM_LEGACY);
  if (legacy && size < read_in_order && from == CU_MEMORYTYPE_HOST && to == CU_MEMORYTYPE_DEVICE)
    c.session.waits().occupy(c, stream);
}

}  // namespace

CUresult copy_out_of(call& c, const staging::block& block, std::size_t size, CUdeviceptr to,
                     marshal::flavour how, CUstream stream) {
  const bool per_thread = marshal::per_thread(how);
  auto* copy = per_thread ? c.driver().cuMemcpyHtoDAsync_v2_ptsz : c.driver().cuMemcpyHtoDAsync_v2;
  const CUresult code = copy(to, block.data, size, stream);
  if (code == CUDA_SUCCESS) {
    c.session.stage().give_back_after(block, stream, per_thread);
  } else {
    c.session.stage().give_back(block);
  }
  return code;
}

outcome ends::cuMemcpyHtoD_v2(call& c, const marshal::copy_in_body& body, std::span<const std::byte> bytes) {
  if (!known(body.how) || bytes.size() > staging::largest) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUstream asked = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, asked); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  if (bytes.empty()) return outcome::answer(CUDA_SUCCESS);
  const relaxed_capture relaxed(c.driver());
  const CUstream stream = stream_of(body.how, asked);
  c.works_on(stream, marshal::per_thread(body.how));
  if (c.header.kind == wire::frame_kind::call)
    c.give_up_turn();  // room, or the stream, may have to be waited for
  staging::block block = c.session.stage().take(bytes.size(), c.header.context);
  if (!block.data) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  std::memcpy(block.data, bytes.data(), bytes.size());
  const CUresult code = copy_out_of(c, block, bytes.size(), body.to, body.how, stream);
  return outcome::answer(code == CUDA_SUCCESS ? finish_if_synchronous(c, body.how, stream) : code);
}

outcome ends::cuMemcpyDtoH_v2(call& c, const marshal::copy_out_body& body) {
  if (!known(body.how)) return outcome::malformed();
  const bool per_thread = marshal::per_thread(body.how);
  CUstream asked = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, asked);
  const CUstream stream = stream_of(body.how, asked);
  auto* copy = per_thread ? c.driver().cuMemcpyDtoHAsync_v2_ptsz : c.driver().cuMemcpyDtoHAsync_v2;
  c.works_on(stream, per_thread);
  const relaxed_capture relaxed(c.driver());
  outgoing_copy out(c, stream, per_thread, body.size);
  return out.run(code, [&](std::uint64_t offset, std::size_t size, std::byte* to) {
    return copy(to, body.from + offset, size, stream);
  });
}

/// The driver finds out by itself on which side each address lies.
outcome ends::cuMemcpyAsync(call& c, const marshal::copy_across_body& body) {
  if (!known(body.how)) return outcome::malformed();
  // The worker's own memory must not be named: only the first page of what both sides share.
  constexpr std::uint64_t page = 4096;
  if (body.done_at != 0 && (body.done_at % sizeof body.done != 0 || !marshal::on_stream(body.how) ||
                            !c.session.mirrors().page_locked(body.done_at / page * page))) {
    return outcome::malformed();
  }
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  unsigned to = 0, from = 0;
  if (!device_knows(d, body.to, to) || !device_knows(d, body.from, from)) code = CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = marshal::per_thread(body.how);
  if (marshal::on_stream(body.how)) {
    c.works_on(stream, per_thread);
    if (code == CUDA_SUCCESS) keep_order(c, stream, body.how, body.size, to, from);
    if (code == CUDA_SUCCESS)
      code = call_driver(per_thread ? d.cuMemcpyAsync_ptsz : d.cuMemcpyAsync, body.to, body.from, body.size,
                         stream);
    if (body.done_at != 0) {
      // Whether the copy was taken or not: the client waits for its word before it uses the bytes again.
      const CUresult told =
          call_driver(per_thread ? d.cuStreamWriteValue32_v2_ptsz : d.cuStreamWriteValue32_v2, stream,
                      body.done_at, body.done, CU_STREAM_WRITE_VALUE_DEFAULT);
      if (code == CUDA_SUCCESS) code = told;
    }
    return outcome::answer(code);
  }
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.give_up_turn();
  return outcome::answer(
      call_driver(per_thread ? d.cuMemcpy_ptds : d.cuMemcpy, body.to, body.from, body.size));
}

}  // namespace outboard::backend
