// Handlers of copies of two and three dimensions, and of those between the host and a row of an array. On the
// server the host's side is a staging block with the rows packed, so the driver sees only the rows named.
#include <cstring>

#include "backend/cuda/copying/copy_order.hh"
#include "backend/cuda/copying/outgoing_copy.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/array_bodies.hh"
#include "marshal/cuda/box_pieces.hh"

namespace outboard::backend {
namespace {

using marshal::box_copy_body;
using marshal::box_kind;
using marshal::box_piece;
using marshal::box_side;

bool is(const box_side& side, box_kind kind) { return side.kind == static_cast<std::uint32_t>(kind); }

/// A copy with its handles resolved. The peer form has every field of the plain one.
struct native_copy {
  CUDA_MEMCPY3D_PEER about{};
  CUstream stream = nullptr;
  marshal::flavour how = marshal::flavour::sync;
  bool peer = false;

  CUresult issue(const api::driver_table& d, CUDA_MEMCPY3D_PEER all, marshal::flavour form) const;
};

CUDA_MEMCPY3D plain(const CUDA_MEMCPY3D_PEER& p) {
  CUDA_MEMCPY3D m{};
  m.srcXInBytes = p.srcXInBytes, m.srcY = p.srcY, m.srcZ = p.srcZ, m.srcLOD = p.srcLOD;
  m.srcMemoryType = p.srcMemoryType, m.srcHost = p.srcHost, m.srcDevice = p.srcDevice;
  m.srcArray = p.srcArray, m.srcPitch = p.srcPitch, m.srcHeight = p.srcHeight;
  m.dstXInBytes = p.dstXInBytes, m.dstY = p.dstY, m.dstZ = p.dstZ, m.dstLOD = p.dstLOD;
  m.dstMemoryType = p.dstMemoryType, m.dstHost = p.dstHost, m.dstDevice = p.dstDevice;
  m.dstArray = p.dstArray, m.dstPitch = p.dstPitch, m.dstHeight = p.dstHeight;
  m.WidthInBytes = p.WidthInBytes, m.Height = p.Height, m.Depth = p.Depth;
  return m;
}

CUresult native_copy::issue(const api::driver_table& d, CUDA_MEMCPY3D_PEER all, marshal::flavour form) const {
  const bool own = marshal::per_thread(form);
  if (peer) {
    if (marshal::on_stream(form))
      return call_driver(own ? d.cuMemcpy3DPeerAsync_ptsz : d.cuMemcpy3DPeerAsync, &all, stream);
    return call_driver(own ? d.cuMemcpy3DPeer_ptds : d.cuMemcpy3DPeer, &all);
  }
  const CUDA_MEMCPY3D m = plain(all);
  if (marshal::on_stream(form))
    return call_driver(own ? d.cuMemcpy3DAsync_v2_ptsz : d.cuMemcpy3DAsync_v2, &m, stream);
  return call_driver(own ? d.cuMemcpy3D_v2_ptds : d.cuMemcpy3D_v2, &m);
}

marshal::flavour on_stream_form(marshal::flavour how) {
  return marshal::per_thread(how) ? marshal::flavour::stream_per_thread : marshal::flavour::stream;
}

CUresult resolve_side(call& c, const box_side& side, CUmemorytype& type, CUdeviceptr& address, CUarray& array,
                      CUcontext& context) {
  type = static_cast<CUmemorytype>(side.kind);
  if (is(side, box_kind::device)) address = side.place;
  CUresult code = is(side, box_kind::array) ? c.objects().resolve(side.place, array) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS && side.context) code = c.objects().resolve(side.context, context);
  return code;
}

CUresult resolve_copy(call& c, const box_copy_body& body, native_copy& out) {
  CUDA_MEMCPY3D_PEER& m = out.about;
  out.how = body.how;
  out.peer = body.to.context || body.from.context;
  if (c.refused != CUDA_SUCCESS) return c.refused;
  CUstream asked = nullptr;
  CUresult code = c.objects().resolve_stream(body.stream, asked);
  out.stream = stream_of(body.how, asked);
  if (code == CUDA_SUCCESS)
    code = resolve_side(c, body.from, m.srcMemoryType, m.srcDevice, m.srcArray, m.srcContext);
  if (code == CUDA_SUCCESS)
    code = resolve_side(c, body.to, m.dstMemoryType, m.dstDevice, m.dstArray, m.dstContext);
  if (code != CUDA_SUCCESS) return code;
  // The host's side of a peer copy lies in this process: any context of it will do.
  if (out.peer && is(body.from, box_kind::host)) m.srcContext = m.dstContext;
  if (out.peer && is(body.to, box_kind::host)) m.dstContext = m.srcContext;
  m.srcXInBytes = body.from.x, m.srcY = body.from.y, m.srcZ = body.from.z, m.srcLOD = body.from.level;
  m.srcPitch = body.from.pitch, m.srcHeight = body.from.rows;
  m.dstXInBytes = body.to.x, m.dstY = body.to.y, m.dstZ = body.to.z, m.dstLOD = body.to.level;
  m.dstPitch = body.to.pitch, m.dstHeight = body.to.rows;
  m.WidthInBytes = body.width, m.Height = body.height, m.Depth = body.depth;
  return CUDA_SUCCESS;
}

outcome box_in(call& c, const box_copy_body& body, std::span<const std::byte> bytes) {
  native_copy copy;
  if (const CUresult code = resolve_copy(c, body, copy); code != CUDA_SUCCESS) return outcome::answer(code);
  if (c.header.kind == wire::frame_kind::call)
    c.give_up_turn();  // room, or the stream, may have to be waited for
  staging::block block = c.session.stage().take(bytes.size(), c.header.context);
  if (!block.data) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  std::memcpy(block.data, bytes.data(), bytes.size());
  CUDA_MEMCPY3D_PEER m = copy.about;
  m.srcXInBytes = m.srcY = m.srcZ = m.srcLOD = 0;
  m.srcHost = block.data, m.srcPitch = body.width, m.srcHeight = body.height;
  const CUresult code = copy.issue(c.driver(), m, on_stream_form(body.how));
  if (code != CUDA_SUCCESS) {
    c.session.stage().give_back(block);
    return outcome::answer(code);
  }
  c.session.stage().give_back_after(block, copy.stream, marshal::per_thread(body.how));
  return outcome::answer(finish_if_synchronous(c, body.how, copy.stream));
}

outcome box_out(call& c, const box_copy_body& body, std::uint64_t bytes) {
  native_copy copy;
  const CUresult refused = resolve_copy(c, body, copy);
  const marshal::box_extent box{body.width, body.height, body.depth};
  const auto at = [&](std::uint64_t offset) {
    return marshal::box_piece_at(box, offset, outgoing_copy::piece);
  };
  outgoing_copy out(c, copy.stream, marshal::per_thread(body.how), bytes,
                    [&](std::uint64_t offset) { return at(offset).bytes(); });
  return out.run(refused, [&](std::uint64_t offset, std::size_t, std::byte* to) {
    const box_piece p = at(offset);
    CUDA_MEMCPY3D_PEER m = copy.about;
    m.srcXInBytes += p.x, m.srcY += p.y, m.srcZ += p.z;
    m.dstXInBytes = m.dstY = m.dstZ = m.dstLOD = 0;
    m.dstHost = to, m.dstPitch = p.size.width, m.dstHeight = p.size.height;
    m.WidthInBytes = p.size.width, m.Height = p.size.height, m.Depth = p.size.depth;
    return copy.issue(c.driver(), m, on_stream_form(body.how));
  });
}

outcome box_between(call& c, const box_copy_body& body) {
  native_copy copy;
  const CUresult code = resolve_copy(c, body, copy);
  return outcome::answer(code != CUDA_SUCCESS ? code : copy.issue(c.driver(), copy.about, body.how));
}

/// A copy to or from the host must name another side, and its bytes must be countable.
bool sound(const box_copy_body& body, std::uint64_t& bytes) {
  const auto side_known = [](const box_side& s) {
    return is(s, box_kind::host) || is(s, box_kind::device) || is(s, box_kind::array);
  };
  const marshal::box_extent box{body.width, body.height, body.depth};
  return known(body.how) && side_known(body.to) && side_known(body.from) && !box.empty() &&
         box.bytes(bytes) && !(is(body.to, box_kind::host) && is(body.from, box_kind::host));
}

}  // namespace

outcome ends::cuMemcpy3D_v2(call& c, const box_copy_body& body, std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  if (!sound(body, size)) return outcome::malformed();
  if (is(body.from, box_kind::host)) {
    if (bytes.size() != size || size > staging::largest) return outcome::malformed();
    return box_in(c, body, bytes);
  }
  if (!bytes.empty()) return outcome::malformed();
  return is(body.to, box_kind::host) ? box_out(c, body, size) : box_between(c, body);
}

outcome ends::cuMemcpyHtoA_v2(call& c, const marshal::array_copy_body& body,
                              std::span<const std::byte> bytes) {
  if (!known(body.how) || bytes.size() != body.size || bytes.empty() || bytes.size() > staging::largest)
    return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUstream asked = nullptr;
  CUarray array = nullptr;
  CUresult code = c.objects().resolve_stream(body.stream, asked);
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.array, array);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const CUstream stream = stream_of(body.how, asked);
  const bool per_thread = marshal::per_thread(body.how);
  c.give_up_turn();
  staging::block block = c.session.stage().take(bytes.size(), c.header.context);
  if (!block.data) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  std::memcpy(block.data, bytes.data(), bytes.size());
  auto* copy = per_thread ? c.driver().cuMemcpyHtoAAsync_v2_ptsz : c.driver().cuMemcpyHtoAAsync_v2;
  code = call_driver(copy, array, body.offset, block.data, bytes.size(), stream);
  if (code != CUDA_SUCCESS) {
    c.session.stage().give_back(block);
    return outcome::answer(code);
  }
  c.session.stage().give_back_after(block, stream, per_thread);
  return outcome::answer(finish_if_synchronous(c, body.how, stream));
}

outcome ends::cuMemcpyAtoH_v2(call& c, const marshal::array_copy_body& body) {
  if (!known(body.how)) return outcome::malformed();
  CUstream asked = nullptr;
  CUarray array = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, asked);
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.array, array);
  const CUstream stream = stream_of(body.how, asked);
  const bool per_thread = marshal::per_thread(body.how);
  auto* copy = per_thread ? c.driver().cuMemcpyAtoHAsync_v2_ptsz : c.driver().cuMemcpyAtoHAsync_v2;
  outgoing_copy out(c, stream, per_thread, body.size);
  return out.run(code, [&](std::uint64_t offset, std::size_t size, std::byte* to) {
    return call_driver(copy, to, array, body.offset + offset, size, stream);
  });
}

}  // namespace outboard::backend
