#include "frontend/cuda/copying/boxes.hh"

#include <algorithm>
#include <cstring>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/copying/elsewhere.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/array_bodies.hh"
#include "marshal/cuda/box_pieces.hh"

namespace outboard::frontend::cuda {
namespace {

using marshal::box_extent;
using marshal::box_kind;
using marshal::box_piece;
using marshal::flavour;

/// Bytes of one frame; gathered rows pass through a buffer of this size.
constexpr std::uint64_t piece = 4u << 20;

/// CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device.
constexpr std::uint64_t max_pitch = 0x7fffffff;

bool is_host(const box_end& e) { return e.type == CU_MEMORYTYPE_HOST; }
bool is_array(const box_end& e) { return e.type == CU_MEMORYTYPE_ARRAY; }

bool fits(std::uint64_t at, std::uint64_t n, std::uint64_t room) { return at <= room && n <= room - at; }

/// What the driver would refuse is refused before a byte of the program is read: its memory ends where the
/// program thinks that the array does.
CUresult settle_array(const box_end& e, const box_extent& size) {
  if (!e.array) return CUDA_ERROR_INVALID_VALUE;
  const array_info* info = find_object<array_info>(e.array);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  const CUDA_ARRAY3D_DESCRIPTOR& a = info->about;
  const std::uint64_t element = element_bytes(a);
  if (element == 0 || e.level != 0) return CUDA_SUCCESS;  // the driver knows more
  const bool inside = fits(e.x, size.width, a.Width * element) &&
                      fits(e.y, size.height, std::max<std::uint64_t>(a.Height, 1)) &&
                      fits(e.z, size.depth, std::max<std::uint64_t>(a.Depth, 1));
  return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The side's type and place settled: unified addresses are looked up, missing pitches filled in.
CUresult settle_side(box_end& e, const box_extent& size) {
  switch (e.type) {
    case CU_MEMORYTYPE_UNIFIED:
      e.type = on_device(e.device) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      e.host = reinterpret_cast<void*>(e.device);
      break;
    case CU_MEMORYTYPE_HOST:
      if (!on_device(reinterpret_cast<std::uint64_t>(e.host))) break;
      e.type = CU_MEMORYTYPE_DEVICE;  // the address says it
      e.device = reinterpret_cast<std::uint64_t>(e.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      break;
    case CU_MEMORYTYPE_ARRAY:
      return settle_array(e, size);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (is_host(e) ? !e.host : !e.device) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t width = 0, height = 0;
  if (__builtin_add_overflow(e.x, size.width, &width) || __builtin_add_overflow(e.y, size.height, &height))
    return CUDA_ERROR_INVALID_VALUE;
  if (e.pitch == 0) e.pitch = width;
  if (e.rows == 0) e.rows = height;
  if (e.pitch < width || e.pitch > max_pitch) return CUDA_ERROR_INVALID_VALUE;
  if (size.depth > 1 && e.rows < height) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/// Where the box begins in memory, and the bytes from its first to its last. False: more than 64 bits count.
bool range_of(const box_end& e, const box_extent& size, std::uint64_t& begin, std::uint64_t& bytes) {
  const auto along = [&](std::uint64_t z, std::uint64_t y, std::uint64_t x, std::uint64_t& out) {
    std::uint64_t slice = 0, slices = 0, rows = 0;
    return !__builtin_mul_overflow(e.pitch, e.rows, &slice) && !__builtin_mul_overflow(slice, z, &slices) &&
           !__builtin_mul_overflow(e.pitch, y, &rows) && !__builtin_add_overflow(slices, rows, &rows) &&
           !__builtin_add_overflow(rows, x, &out);
  };
  const auto base = is_host(e) ? reinterpret_cast<std::uint64_t>(e.host) : e.device;
  std::uint64_t offset = 0, end = 0;
  return along(e.z, e.y, e.x, offset) && along(size.depth - 1, size.height - 1, size.width, bytes) &&
         !__builtin_add_overflow(base, offset, &begin) && !__builtin_add_overflow(begin, bytes, &end);
}

using place_of = server_place (*)(lane&, std::uint64_t, std::uint64_t);

/// A host range that the server has too (as `place` says) is copied there.
CUresult move_to_server(lane& own, box_end& e, const box_extent& size, place_of place) {
  std::uint64_t begin = 0, bytes = 0;
  if (!is_host(e) || !range_of(e, size, begin, bytes)) return CUDA_SUCCESS;
  const server_place there = place(own, begin, bytes);
  if (there.code != CUDA_SUCCESS || !there.address) return there.code;
  e.type = CU_MEMORYTYPE_DEVICE;
  e.device = there.address - (begin - reinterpret_cast<std::uint64_t>(e.host));
  return CUDA_SUCCESS;
}

/// The driver will take this side: nothing of it needs the server's word first.
bool surely_good(const box_end& e, const box_extent& size) {
  if (!is_array(e)) {
    std::uint64_t begin = 0, bytes = 0;
    return range_of(e, size, begin, bytes) && process::instance().memory().addresses().covers(begin, bytes);
  }
  const array_info* info = find_object<array_info>(e.array);
  const std::uint64_t element = info ? element_bytes(info->about) : 0;
  if (element == 0 || e.level != 0) return false;
  return e.x % element == 0 && size.width % element == 0;
}

marshal::box_side side_of(const box_end& e, bool peer) {
  marshal::box_side s;
  const auto kind = is_host(e) ? box_kind::host : is_array(e) ? box_kind::array : box_kind::device;
  s.kind = static_cast<std::uint32_t>(kind);
  if (kind == box_kind::host) return s;
  s.place = is_array(e) ? value_of(e.array) : e.device;
  s.level = e.level, s.x = e.x, s.y = e.y, s.z = e.z;
  if (kind == box_kind::device) s.pitch = e.pitch, s.rows = e.rows;
  if (peer) s.context = value_of(e.context);
  return s;
}

marshal::box_copy_body body_of(const box& copy, CUstream stream, flavour how) {
  return {side_of(copy.to, copy.peer),
          side_of(copy.from, copy.peer),
          copy.width,
          copy.height,
          copy.depth,
          value_of(stream),
          how};
}

/// The bytes of one piece in a row: where they lie if they do, else gathered into `room`.
std::span<const std::byte> packed(const box_end& from, const std::byte* begin, const box_piece& p,
                                  std::vector<std::byte>& room) {
  const std::uint64_t slice = from.pitch * from.rows;
  const auto at = [&](std::uint64_t z, std::uint64_t y) {
    return begin + (p.z + z) * slice + (p.y + y) * from.pitch + p.x;
  };
  const bool rows_touch = p.size.height == 1 || from.pitch == p.size.width;
  const bool slices_touch = p.size.depth == 1 || slice == p.size.width * p.size.height;
  if (rows_touch && slices_touch) return {at(0, 0), p.bytes()};
  room.resize(p.bytes());
  std::byte* to = room.data();
  for (std::uint64_t z = 0; z < p.size.depth; ++z) {
    for (std::uint64_t y = 0; y < p.size.height; ++y, to += p.size.width)
      std::memcpy(to, at(z, y), p.size.width);
  }
  return room;
}

}  // namespace

bool read_source(box& copy, std::vector<std::byte>& bytes) {
  const box_extent size{copy.width, copy.height, copy.depth};
  box_end from = copy.from;
  std::uint64_t begin = 0, all = 0, extent = 0;
  if (!is_host(from) || settle_side(from, size) != CUDA_SUCCESS || !is_host(from) ||
      !range_of(from, size, begin, extent) || !size.bytes(all) || !page_locked(begin, extent))
    return false;
  const auto rows = packed(from, reinterpret_cast<const std::byte*>(begin), {0, 0, 0, size}, bytes);
  if (rows.data() != bytes.data()) bytes.assign(rows.begin(), rows.end());
  copy.from = {};
  copy.from.host = bytes.data();
  return true;
}

namespace {

CUresult from_host(lane& own, const box& copy, const box_extent& size, CUstream stream, flavour how,
                   bool may_post) {
  const earlier_results earlier(own);
  std::uint64_t begin = 0, bytes = 0, all = 0;
  if (!range_of(copy.from, size, begin, bytes) || !size.bytes(all)) return CUDA_ERROR_INVALID_VALUE;
  const auto* first = reinterpret_cast<const std::byte*>(begin);
  if (const CUresult code = settle(own, first, bytes); code != CUDA_SUCCESS) return code;
  // While streams may wait for host functions of ours the server must not be left with more than it can keep.
  may_post = may_post && may_run_behind(how) && !process::instance().server()->callbacks_expected();
  for (std::uint64_t done = 0; done < all;) {
    const box_piece p = marshal::box_piece_at(size, done, piece);
    marshal::box_copy_body body = body_of(copy, stream, how);
    body.to.x += p.x, body.to.y += p.y, body.to.z += p.z;
    body.width = p.size.width, body.height = p.size.height, body.depth = p.size.depth;
    request_of<api::opcode::cuMemcpy3D_v2> r(own, body);
    const std::span<const std::byte> part = packed(copy.from, first, p, own.gathered);
    if (const CUresult code = may_post ? r.post(part) : r.call(part); code != CUDA_SUCCESS) return code;
    done += p.bytes();
  }
  return earlier.bring(how);
}

CUresult to_host(lane& own, const box& copy, const box_extent& size, CUstream stream, flavour how,
                 bool may_post) {
  landing land;
  std::uint64_t begin = 0, bytes = 0;
  if (!range_of(copy.to, size, begin, bytes) || !size.bytes(land.size)) return CUDA_ERROR_INVALID_VALUE;
  land.to = reinterpret_cast<std::byte*>(begin);
  land.row = size.width, land.pitch = copy.to.pitch;
  land.rows = size.height, land.slice = copy.to.pitch * copy.to.rows;
  request_of<api::opcode::cuMemcpy3D_v2> r(own, body_of(copy, stream, how));
  const bool later = may_post && marshal::on_stream(how) && page_locked(begin, bytes);
  return later ? r.post({}, &land) : r.call({}, &land);
}

CUresult on_host(lane& own, const box& copy, const box_extent& size, CUstream stream, flavour how) {
  std::uint64_t to = 0, from = 0, bytes = 0, bytes_to = 0;
  if (!range_of(copy.to, size, to, bytes_to) || !range_of(copy.from, size, from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  bytes = std::max(bytes, bytes_to);
  if (const CUresult code = wait_in_stream(stream, how); code != CUDA_SUCCESS) return code;
  for (const std::uint64_t end : {from, to}) {
    const CUresult code = settle(own, reinterpret_cast<const void*>(end), bytes);
    if (code != CUDA_SUCCESS) return code;
  }
  for (std::uint64_t z = 0; z < size.depth; ++z) {
    for (std::uint64_t y = 0; y < size.height; ++y) {
      std::memmove(reinterpret_cast<void*>(to + (z * copy.to.rows + y) * copy.to.pitch),
                   reinterpret_cast<const void*>(from + (z * copy.from.rows + y) * copy.from.pitch),
                   size.width);
    }
  }
  return CUDA_SUCCESS;
}

/// Where the side's memory lives, if that is not here.
context_state* home_of(const lane& own, const box_end& e) {
  return e.type == CU_MEMORYTYPE_DEVICE ? owner_elsewhere(own, e.device) : nullptr;
}

/// A copy that touches memory of another device: there, if all of it lies there; else between the two as the
/// driver's own copy of peers, for which `copy` is made ready.
std::optional<CUresult> box_elsewhere(lane& own, box& copy, CUstream stream, flavour how) {
  context_state *there = home_of(own, copy.to), *whence = home_of(own, copy.from);
  if ((!there && !whence) || copy.peer || !may_go_elsewhere(how)) return std::nullopt;
  const bool one_place =
      there && whence ? there->device == whence->device : is_host(copy.from) || is_host(copy.to);
  if (one_place) {
    return over_there(own, there ? *there : *whence, stream, how,
                      [&](CUstream side) { return copy_box(copy, side, how); });
  }
  const auto context_of = [&](const context_state* home) {
    return reinterpret_cast<CUcontext>(home ? home->handle : own.context_handle());
  };
  copy.peer = true, copy.to.context = context_of(there), copy.from.context = context_of(whence);
  return std::nullopt;
}

CUDA_MEMCPY3D parameters_of(const box& copy) {
  CUDA_MEMCPY3D p{};
  const box_end &from = copy.from, &to = copy.to;
  p.srcXInBytes = from.x, p.srcY = from.y, p.srcZ = from.z, p.srcLOD = from.level;
  p.srcMemoryType = from.type, p.srcHost = from.host, p.srcDevice = from.device, p.srcArray = from.array;
  p.srcPitch = from.pitch, p.srcHeight = from.rows;
  p.dstXInBytes = to.x, p.dstY = to.y, p.dstZ = to.z, p.dstLOD = to.level;
  p.dstMemoryType = to.type, p.dstHost = to.host, p.dstDevice = to.device, p.dstArray = to.array;
  p.dstPitch = to.pitch, p.dstHeight = to.rows;
  p.WidthInBytes = copy.width, p.Height = copy.height, p.Depth = copy.depth;
  return p;
}

}  // namespace

std::uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& about) {
  switch (about.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return about.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2ull * about.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4ull * about.NumChannels;
    default:
      return 0;
  }
}

CUresult copy_box(box copy, CUstream stream, flavour how) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const box_extent size{copy.width, copy.height, copy.depth};
  if (size.empty()) return CUDA_SUCCESS;
  if (const CUresult code = settle_side(copy.from, size); code != CUDA_SUCCESS) return code;
  if (const CUresult code = settle_side(copy.to, size); code != CUDA_SUCCESS) return code;
  for (const box_end* side : {&copy.from, &copy.to}) {
    std::uint64_t begin = 0, bytes = 0;
    if (is_array(*side)) continue;
    if (!range_of(*side, size, begin, bytes) || leaves_its_block(begin, bytes))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const bool from_here = is_host(copy.from), to_here = is_host(copy.to);
  const bool captured = marshal::on_stream(how) && stream_captures(own, stream, marshal::per_thread(how));
  const CUDA_MEMCPY3D asked = parameters_of(copy);
  if (captured && from_here && to_here) return capture_box(own, asked, stream, marshal::per_thread(how));
  if (captured) {
    for (const box_end* side : {&copy.from, &copy.to}) {
      if (side->type == CU_MEMORYTYPE_DEVICE) reach(own, side->device);
    }
  } else {
    if (const auto code = box_elsewhere(own, copy, stream, how)) return *code;
  }
  if (!(from_here && to_here)) {
    const place_of source = captured ? make_place_on_server : place_behind_functions;
    const place_of target = captured ? make_place_on_server : place_on_server;
    if (const CUresult code = move_to_server(own, copy.from, size, source); code != CUDA_SUCCESS) return code;
    if (const CUresult code = move_to_server(own, copy.to, size, target); code != CUDA_SUCCESS) return code;
  }
  if (captured && (is_host(copy.from) || is_host(copy.to)))
    return capture_box(own, asked, stream, marshal::per_thread(how));
  const bool from_there = from_here && !is_host(copy.from), to_there = to_here && !is_host(copy.to);
  // What kernels and this process both see must be fetched when the program may look.
  const bool seen = from_there || to_there || (copy.to.type == CU_MEMORYTYPE_DEVICE && shown(copy.to.device));
  const bool unsafe = any_capture_open();  // the server says whether capture forbids it
  const bool good = !unsafe && !copy.peer && (is_host(copy.from) || surely_good(copy.from, size)) &&
                    (is_host(copy.to) || surely_good(copy.to, size));
  if (is_host(copy.from)) {
    if (is_host(copy.to) && marshal::on_stream(how) && any_capture_open())
      return copy_beside_capture(own, asked, stream, marshal::per_thread(how));
    if (is_host(copy.to)) return on_host(own, copy, size, stream, how);
    const CUresult code = from_host(own, copy, size, stream, how, good);
    return code == CUDA_SUCCESS && seen ? finish(own, how) : code;
  }
  if (is_host(copy.to)) return to_host(own, copy, size, stream, how, good);
  if (to_there) expect_results(own);
  request_of<api::opcode::cuMemcpy3D_v2> r(own, body_of(copy, stream, how));
  r.names_copies_alone();
  const CUresult code = good ? r.post() : r.call();
  return code == CUDA_SUCCESS && seen ? finish(own, how) : code;
}

}  // namespace outboard::frontend::cuda
