// Entries of the chapter memory that copy boxes, or touch arrays. An array is memory with a pitch of its own,
// so every copy comes down to the same move.
#include <algorithm>
#include <set>

#include "device/cpu/copy.hh"
#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// One end of a copy as its parameters give it.
struct box_end {
  CUmemorytype type;
  std::uint64_t host, device;
  CUarray array;
  std::uint64_t x, y, z, pitch, rows;  ///< no level: drivers do not look at it
};

/// The same as memory.
struct place {
  std::uint64_t address = 0, pitch = 0, slice = 0;
  side where = side::either;
};

struct extents {
  std::uint64_t width, height, depth;
};

bool fits(std::uint64_t at, std::uint64_t n, std::uint64_t room) { return at <= room && n <= room - at; }

CUresult array_place(const box_end& e, const extents& size, place& out) {
  const auto found = here().arrays.find(reinterpret_cast<std::uint64_t>(e.array));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ptx::image_level& m = found->memory.levels.front();
  const std::uint64_t texel = found->memory.texel_bytes();
  if (!fits(e.x, size.width, m.width * texel) || !fits(e.y, size.height, m.height) ||
      !fits(e.z, size.depth, m.depth)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out = {address_of(m.data) + e.z * m.slice + e.y * m.pitch + e.x, m.pitch, m.slice, side::device};
  return CUDA_SUCCESS;
}

CUresult place_of(const box_end& e, const extents& size, place& out) {
  switch (e.type) {
    case CU_MEMORYTYPE_ARRAY:
      return array_place(e, size, out);
    case CU_MEMORYTYPE_HOST:
      out.address = e.host, out.where = side::host;
      break;
    case CU_MEMORYTYPE_DEVICE:
      out.address = e.device, out.where = side::device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      out.address = e.device, out.where = side::either;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  // Left out, a pitch is as narrow as the copy allows.
  std::uint64_t width = 0, height = 0, skip = 0, rows = 0;
  if (__builtin_add_overflow(e.x, size.width, &width) || __builtin_add_overflow(e.y, size.height, &height))
    return CUDA_ERROR_INVALID_VALUE;
  out.pitch = e.pitch != 0 ? e.pitch : width;
  const std::uint64_t in_slice = e.rows != 0 ? e.rows : height;
  const auto most =
      static_cast<std::uint64_t>(here().facts.attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH).value_or(0));
  if (out.pitch < width || out.pitch > most) return CUDA_ERROR_INVALID_VALUE;
  if (size.depth > 1 && in_slice < height) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(out.pitch, in_slice, &out.slice) ||
      __builtin_mul_overflow(e.z, out.slice, &skip) || __builtin_mul_overflow(e.y, out.pitch, &rows) ||
      __builtin_add_overflow(skip, rows + e.x, &skip) ||
      __builtin_add_overflow(out.address, skip, &out.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/// The same in three dimensions, without contexts.
template <class P>
CUDA_MEMCPY3D in_three(const P& p) {
  CUDA_MEMCPY3D m{};
  m.srcXInBytes = p.srcXInBytes, m.srcY = p.srcY, m.srcMemoryType = p.srcMemoryType;
  m.srcHost = p.srcHost, m.srcDevice = p.srcDevice, m.srcArray = p.srcArray, m.srcPitch = p.srcPitch;
  m.dstXInBytes = p.dstXInBytes, m.dstY = p.dstY, m.dstMemoryType = p.dstMemoryType;
  m.dstHost = p.dstHost, m.dstDevice = p.dstDevice, m.dstArray = p.dstArray, m.dstPitch = p.dstPitch;
  m.WidthInBytes = p.WidthInBytes, m.Height = p.Height, m.Depth = 1;
  if constexpr (requires { p.Depth; }) {
    m.srcZ = p.srcZ, m.srcHeight = p.srcHeight, m.dstZ = p.dstZ, m.dstHeight = p.dstHeight, m.Depth = p.Depth;
  }
  return m;
}

template <class P>
CUresult request_of(const P& p, copy_request& r) {
  box_end to{p.dstMemoryType,
             address_of(p.dstHost),
             p.dstDevice,
             p.dstArray,
             p.dstXInBytes,
             p.dstY,
             0,
             p.dstPitch,
             0};
  box_end from{p.srcMemoryType,
               address_of(p.srcHost),
               p.srcDevice,
               p.srcArray,
               p.srcXInBytes,
               p.srcY,
               0,
               p.srcPitch,
               0};
  extents size{p.WidthInBytes, p.Height, 1};
  if constexpr (requires { p.Depth; }) {
    to.z = p.dstZ, to.rows = p.dstHeight;
    from.z = p.srcZ, from.rows = p.srcHeight;
    size.depth = p.Depth;
  }
  if (size.width == 0 || size.height == 0 || size.depth == 0) return CUDA_SUCCESS;
  place target, source;
  if (const CUresult bad = place_of(to, size, target); bad != CUDA_SUCCESS) return bad;
  if (const CUresult bad = place_of(from, size, source); bad != CUDA_SUCCESS) return bad;
  r.to = target.address, r.to_side = target.where;
  r.from = source.address, r.from_side = source.where;
  if (p.srcMemoryType == CU_MEMORYTYPE_ARRAY || p.dstMemoryType == CU_MEMORYTYPE_ARRAY) r.asked = in_three(p);
  r.size = {size.width, size.height, size.depth, target.pitch, target.slice, source.pitch, source.slice};
  return CUDA_SUCCESS;
}

/// Of a peer copy: both must be. With one device they need not differ.
struct both_contexts {
  context_ptr to, from;
};

CUresult contexts_of(CUcontext to, CUcontext from, both_contexts& out) {
  if (const CUresult bad = context_of(to, out.to); bad != CUDA_SUCCESS) return bad;
  return context_of(from, out.from);
}

/// A peer copy without a stream comes behind all that the current context and both of its own have now, and
/// before all that they get.
CUresult copy_between(const both_contexts& ends, const copy_request& r, bool per_thread) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, nullptr, per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (s->capturing()) return copy_now(r, per_thread);
    scheduler& work = here().work;
    const std::set<group_ptr> groups{own.group, ends.to->group, ends.from->group};
    for (const group_ptr& group : groups) work.wait_event(s, work.record(group));
    const CUresult done = copy_now(r, per_thread);
    const point_ptr behind = work.record(s);
    for (const group_ptr& group : groups) work.wait_event(group, behind);
    return done;
  });
}

/// Only memory of the device has a context.
CUcontext target_context(const CUDA_MEMCPY3D_PEER& p) {
  return p.dstMemoryType == CU_MEMORYTYPE_DEVICE ? p.dstContext : nullptr;
}
CUcontext source_context(const CUDA_MEMCPY3D_PEER& p) {
  return p.srcMemoryType == CU_MEMORYTYPE_DEVICE ? p.srcContext : nullptr;
}

template <class P>
struct shaped_copy {
  static constexpr bool between_contexts = requires(const P& p) { p.dstContext; };
  copy_request request;
  both_contexts ends;  ///< of a peer copy

  CUresult prepare(const P* p) {
    return with_context([&](context&, const context_ptr&) -> CUresult {
      if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if constexpr (between_contexts) {
        const CUresult bad = contexts_of(target_context(*p), source_context(*p), ends);
        if (bad != CUDA_SUCCESS) return bad;
      }
      return request_of(*p, request);
    });
  }
};

template <class P, bool PerThread>
CUresult copy_shaped(const P* p) {
  shaped_copy<P> copy;
  if (const CUresult bad = copy.prepare(p); bad != CUDA_SUCCESS) return bad;
  if constexpr (shaped_copy<P>::between_contexts) {
    return copy_between(copy.ends, copy.request, PerThread);
  } else {
    return copy_now(copy.request, PerThread);
  }
}

template <class P, bool PerThread>
CUresult copy_shaped_async(const P* p, CUstream stream) {
  shaped_copy<P> copy;
  const CUresult bad = copy.prepare(p);
  return bad != CUDA_SUCCESS ? bad : copy_later(copy.request, stream, PerThread);
}

// --- arrays in a row

/// A run of an array's bytes, rows behind each other, at most to the end of a row.
struct row_part {
  std::uint64_t address = 0, bytes = 0;
};

/// Calls `move(part, done)` for each run of [offset, offset + bytes).
template <class Move>
CUresult along_rows(CUarray handle, std::uint64_t offset, std::uint64_t bytes, Move&& move) {
  const auto found = here().arrays.find(reinterpret_cast<std::uint64_t>(handle));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ptx::image_level& m = found->memory.levels.front();
  const std::uint64_t row = std::uint64_t{m.width} * found->memory.texel_bytes();
  if (m.depth != 1 || !fits(offset, bytes, row * m.height)) return CUDA_ERROR_INVALID_VALUE;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = offset + done, in_row = at % row;
    const row_part part{address_of(m.data) + at / row * m.pitch + in_row,
                        std::min(row - in_row, bytes - done)};
    if (const CUresult bad = move(part, done); bad != CUDA_SUCCESS) return bad;
    done += part.bytes;
  }
  return CUDA_SUCCESS;
}

copy_request linear(std::uint64_t to, side to_side, std::uint64_t from, side from_side, std::uint64_t bytes) {
  copy_request r;
  r.to = to, r.to_side = to_side, r.from = from, r.from_side = from_side;
  r.size.width = bytes;
  return r;
}

/// `issue` carries out one run.
template <class Issue>
CUresult into_array(CUarray array, std::size_t offset, std::uint64_t from, side where, std::size_t bytes,
                    Issue&& issue) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    return along_rows(array, offset, bytes, [&](const row_part& p, std::uint64_t done) {
      return issue(linear(p.address, side::device, from + done, where, p.bytes));
    });
  });
}

template <class Issue>
CUresult out_of_array(std::uint64_t to, side where, CUarray array, std::size_t offset, std::size_t bytes,
                      Issue&& issue) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    return along_rows(array, offset, bytes, [&](const row_part& p, std::uint64_t done) {
      return issue(linear(to + done, where, p.address, side::device, p.bytes));
    });
  });
}

template <bool PerThread>
struct array_copies {
  static constexpr auto now = [](const copy_request& r) { return copy_now(r, PerThread); };
  static auto later(CUstream s) {
    return [s](const copy_request& r) { return copy_later(r, s, PerThread); };
  }
  static CUresult in(CUarray to, std::size_t offset, const void* from, std::size_t n) {
    return into_array(to, offset, address_of(from), side::host, n, now);
  }
  static CUresult in_async(CUarray to, std::size_t offset, const void* from, std::size_t n, CUstream s) {
    return into_array(to, offset, address_of(from), side::host, n, later(s));
  }
  static CUresult out(void* to, CUarray from, std::size_t offset, std::size_t n) {
    return out_of_array(address_of(to), side::host, from, offset, n, now);
  }
  static CUresult out_async(void* to, CUarray from, std::size_t offset, std::size_t n, CUstream s) {
    return out_of_array(address_of(to), side::host, from, offset, n, later(s));
  }
  static CUresult from_device(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t n) {
    return into_array(to, offset, from, side::device, n, now);
  }
  static CUresult to_device(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t n) {
    return out_of_array(to, side::device, from, offset, n, now);
  }
  static CUresult between(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                          std::size_t n) {
    return with_context([&](context&, const context_ptr&) -> CUresult {
      return along_rows(from, from_offset, n, [&](const row_part& part, std::uint64_t done) {
        return into_array(to, to_offset + done, part.address, side::device, part.bytes, now);
      });
    });
  }
  static CUresult peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                       std::size_t n) {
    return with_context([&](context&, const context_ptr&) -> CUresult {
      both_contexts ends;
      if (const CUresult bad = contexts_of(to_context, from_context, ends); bad != CUDA_SUCCESS) return bad;
      return copy_between(ends, linear(to, side::device, from, side::device, n), PerThread);
    });
  }
  static CUresult peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             std::size_t n, CUstream s) {
    return with_context([&](context&, const context_ptr&) -> CUresult {
      both_contexts ends;
      if (const CUresult bad = contexts_of(to_context, from_context, ends); bad != CUDA_SUCCESS) return bad;
      return copy_later(linear(to, side::device, from, side::device, n), s, PerThread);
    });
  }
};

}  // namespace

CUresult prepare_copy(const context_ptr& c, const CUDA_MEMCPY3D& p, copy_work& out) {
  copy_request r;
  if (const CUresult bad = request_of(p, r); bad != CUDA_SUCCESS) return bad;
  if (r.size.empty() || !allowed(r)) return CUDA_ERROR_INVALID_VALUE;
  out = work_of(c, r);
  out.about = p;
  return CUDA_SUCCESS;
}

void fill_shaped_copy_entries(api::driver_table& t) {
  t.cuMemcpy2D_v2 = t.cuMemcpy2DUnaligned_v2 = copy_shaped<CUDA_MEMCPY2D, false>;
  t.cuMemcpy2D_v2_ptds = t.cuMemcpy2DUnaligned_v2_ptds = copy_shaped<CUDA_MEMCPY2D, true>;
  t.cuMemcpy2DAsync_v2 = copy_shaped_async<CUDA_MEMCPY2D, false>;
  t.cuMemcpy2DAsync_v2_ptsz = copy_shaped_async<CUDA_MEMCPY2D, true>;
  t.cuMemcpy3D_v2 = copy_shaped<CUDA_MEMCPY3D, false>;
  t.cuMemcpy3D_v2_ptds = copy_shaped<CUDA_MEMCPY3D, true>;
  t.cuMemcpy3DAsync_v2 = copy_shaped_async<CUDA_MEMCPY3D, false>;
  t.cuMemcpy3DAsync_v2_ptsz = copy_shaped_async<CUDA_MEMCPY3D, true>;
  t.cuMemcpy3DPeer = copy_shaped<CUDA_MEMCPY3D_PEER, false>;
  t.cuMemcpy3DPeer_ptds = copy_shaped<CUDA_MEMCPY3D_PEER, true>;
  t.cuMemcpy3DPeerAsync = copy_shaped_async<CUDA_MEMCPY3D_PEER, false>;
  t.cuMemcpy3DPeerAsync_ptsz = copy_shaped_async<CUDA_MEMCPY3D_PEER, true>;
  using legacy = array_copies<false>;
  using own = array_copies<true>;
  t.cuMemcpyHtoA_v2 = legacy::in;
  t.cuMemcpyHtoA_v2_ptds = own::in;
  t.cuMemcpyHtoAAsync_v2 = legacy::in_async;
  t.cuMemcpyHtoAAsync_v2_ptsz = own::in_async;
  t.cuMemcpyAtoH_v2 = legacy::out;
  t.cuMemcpyAtoH_v2_ptds = own::out;
  t.cuMemcpyAtoHAsync_v2 = legacy::out_async;
  t.cuMemcpyAtoHAsync_v2_ptsz = own::out_async;
  t.cuMemcpyDtoA_v2 = legacy::from_device;
  t.cuMemcpyDtoA_v2_ptds = own::from_device;
  t.cuMemcpyAtoD_v2 = legacy::to_device;
  t.cuMemcpyAtoD_v2_ptds = own::to_device;
  t.cuMemcpyAtoA_v2 = legacy::between;
  t.cuMemcpyAtoA_v2_ptds = own::between;
  t.cuMemcpyPeer = legacy::peer;
  t.cuMemcpyPeer_ptds = own::peer;
  t.cuMemcpyPeerAsync = legacy::peer_async;
  t.cuMemcpyPeerAsync_ptsz = own::peer_async;
}

}  // namespace outboard::device::cpu
