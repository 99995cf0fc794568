// Chapter memory: copies between the host and arrays of one dimension. The offset is in bytes.
#include <algorithm>

#include "frontend/cuda/copying/boxes.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using marshal::flavour;

constexpr std::uint64_t piece = 16u << 20;

CUresult begin(lane& own, CUarray array, const void* host, std::size_t size, CUstream stream) {
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!array) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream) || !find_object<array_info>(array)) return CUDA_ERROR_INVALID_HANDLE;
  return !host && size != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

box_end end_of(const void* host) {
  box_end e;
  e.host = const_cast<void*>(host);
  return e;
}
box_end end_of(CUarray array, std::size_t offset) {
  box_end e;
  e.type = CU_MEMORYTYPE_ARRAY;
  e.array = array, e.x = offset;
  return e;
}

CUresult to_array(CUarray array, std::size_t offset, const void* from, std::size_t size, CUstream stream,
                  flavour how) {
  lane& own = this_lane();
  if (const CUresult code = begin(own, array, from, size, stream); code != CUDA_SUCCESS || size == 0)
    return code;
  const server_place there = place_behind_functions(own, reinterpret_cast<std::uint64_t>(from), size);
  if (there.code != CUDA_SUCCESS) return there.code;
  if (there.address) {
    box copy{end_of(array, offset), end_of(from), size, 1, 1};
    return copy_box(copy, stream, how);
  }
  if (const CUresult code = settle(own, from, size); code != CUDA_SUCCESS) return code;
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t n = std::min(piece, size - done);
    request_of<api::opcode::cuMemcpyHtoA_v2> r(
        own, marshal::array_copy_body{value_of(array), offset + done, n, value_of(stream), how});
    // The driver knows what lies within the array: it is asked.
    const CUresult code = r.call(std::span(static_cast<const std::byte*>(from) + done, n));
    if (code != CUDA_SUCCESS) return code;
    done += n;
  }
  return CUDA_SUCCESS;
}

CUresult from_array(void* to, CUarray array, std::size_t offset, std::size_t size, CUstream stream,
                    flavour how) {
  lane& own = this_lane();
  if (const CUresult code = begin(own, array, to, size, stream); code != CUDA_SUCCESS || size == 0)
    return code;
  if (shown(reinterpret_cast<std::uint64_t>(to))) {
    box copy{end_of(to), end_of(array, offset), size, 1, 1};
    return copy_box(copy, stream, how);
  }
  request_of<api::opcode::cuMemcpyAtoH_v2> r(
      own, marshal::array_copy_body{value_of(array), offset, size, value_of(stream), how});
  const landing land{static_cast<std::byte*>(to), size};
  const CUDA_ARRAY3D_DESCRIPTOR& about = find_object<array_info>(array)->about;
  const std::uint64_t row = about.Width * element_bytes(about);
  const bool inside = about.Height == 0 && about.Depth == 0 && offset <= row && size <= row - offset;
  const bool later =
      inside && marshal::on_stream(how) && page_locked(reinterpret_cast<std::uint64_t>(to), size);
  return later ? r.post({}, &land) : r.call({}, &land);
}

}  // namespace

namespace ends {

CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount) {
  return to_array(dstArray, dstOffset, srcHost, ByteCount, nullptr, flavour::sync);
}
CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount) {
  return to_array(dstArray, dstOffset, srcHost, ByteCount, nullptr, flavour::sync_per_thread);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return to_array(dstArray, dstOffset, srcHost, ByteCount, hStream, flavour::stream);
}
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount,
                                   CUstream hStream) {
  return to_array(dstArray, dstOffset, srcHost, ByteCount, hStream, flavour::stream_per_thread);
}
CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return from_array(dstHost, srcArray, srcOffset, ByteCount, nullptr, flavour::sync);
}
CUresult cuMemcpyAtoH_v2_ptds(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return from_array(dstHost, srcArray, srcOffset, ByteCount, nullptr, flavour::sync_per_thread);
}
CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                              CUstream hStream) {
  return from_array(dstHost, srcArray, srcOffset, ByteCount, hStream, flavour::stream);
}
CUresult cuMemcpyAtoHAsync_v2_ptsz(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                                   CUstream hStream) {
  return from_array(dstHost, srcArray, srcOffset, ByteCount, hStream, flavour::stream_per_thread);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
