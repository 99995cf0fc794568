// Entries of the chapter memory that move bytes: copies and fills, in stream order.
//
// A copy is refused at the call when a device range is not all accessible. From pageable host memory the
// source may be reused when the call returns, so small sources are staged and large ones are copied before it
// returns; to pageable memory the bytes are there when the call returns.
#include <cstring>

#include "device/cpu/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::size_t staging_limit = 64u << 10;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

enum class side { device, host, either };

/// One side of a copy: `bytes` from `address` on.
bool allowed(std::uint64_t address, std::uint64_t bytes, side where, bool write) {
  const memory& store = *here().store;
  if (where == side::host) return address != 0;
  if (where == side::either && !store.lookup(address)) return address != 0;
  return store.accessible(address, bytes, write);
}

/// Memory whose bytes stay until the operation runs: the device's and page-locked.
bool stays(std::uint64_t address) { return here().store->lookup(address).has_value(); }

/// Up to three dimensions; for one, height and depth are 1.
struct shape {
  std::size_t width = 0, height = 1, depth = 1;
  std::size_t to_pitch = 0, to_slice = 0, from_pitch = 0, from_slice = 0;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  /// Bytes from the first to the last one touched; all there are when that does not fit, so no range allows
  /// it.
  std::uint64_t extent(std::size_t pitch, std::size_t slice) const {
    std::uint64_t slices = 0, rows = 0, all = 0;
    const bool overflow = __builtin_mul_overflow(depth - 1, slice, &slices) ||
                          __builtin_mul_overflow(height - 1, pitch, &rows) ||
                          __builtin_add_overflow(slices, rows, &all) ||
                          __builtin_add_overflow(all, width, &all);
    return overflow ? ~std::uint64_t{0} : all;
  }
};

void move(std::uint64_t to, std::uint64_t from, const shape& s) {
  for (std::size_t z = 0; z < s.depth; ++z) {
    for (std::size_t y = 0; y < s.height; ++y) {
      std::memmove(pointer(to + z * s.to_slice + y * s.to_pitch),
                   pointer(from + z * s.from_slice + y * s.from_pitch), s.width);
    }
  }
}

/// The body of a copy between ranges that were accessible at the call; a range unmapped since is the
/// program's error.
CUresult move_checked(std::uint64_t to, std::uint64_t from, const shape& s) {
  const memory::flight flight(*here().store);
  move(to, from, s);
  return CUDA_SUCCESS;
}

struct request {
  std::uint64_t to = 0, from = 0;
  side to_side = side::either, from_side = side::either;
  shape size;
  CUstream stream = nullptr;
  bool per_thread = false, wait = false;
};

/// What a captured copy looks like to the program.
CUDA_MEMCPY3D description(const request& r) {
  const auto memory_type = [](std::uint64_t address, side where) {
    if (where == side::host) return CU_MEMORYTYPE_HOST;
    const auto block = here().store->lookup(address);
    const bool host = !block || block->kind == memory_kind::host || block->kind == memory_kind::registered;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  CUDA_MEMCPY3D about{};
  about.srcMemoryType = memory_type(r.from, r.from_side);
  about.dstMemoryType = memory_type(r.to, r.to_side);
  if (about.srcMemoryType == CU_MEMORYTYPE_HOST) {
    about.srcHost = pointer(r.from);
  } else {
    about.srcDevice = r.from;
  }
  if (about.dstMemoryType == CU_MEMORYTYPE_HOST) {
    about.dstHost = pointer(r.to);
  } else {
    about.dstDevice = r.to;
  }
  about.WidthInBytes = r.size.width, about.Height = r.size.height, about.Depth = r.size.depth;
  about.srcPitch = r.size.from_pitch ? r.size.from_pitch : r.size.width;
  about.dstPitch = r.size.to_pitch ? r.size.to_pitch : r.size.width;
  about.srcHeight = r.size.from_slice ? r.size.from_slice / about.srcPitch : r.size.height;
  about.dstHeight = r.size.to_slice ? r.size.to_slice / about.dstPitch : r.size.height;
  return about;
}

/// The copy as a node of a graph: host memory is read and written at each launch.
copy_work work_of(const context_ptr& c, const request& r) {
  return {description(r), c,
          [to = r.to, from = r.from, size = r.size] { return move_checked(to, from, size); }};
}

CUresult copy(const request& r) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, r.stream, r.per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (r.size.empty()) return CUDA_SUCCESS;
    const shape size = r.size;
    const std::uint64_t to_bytes = size.extent(size.to_pitch, size.to_slice);
    const std::uint64_t from_bytes = size.extent(size.from_pitch, size.from_slice);
    if (!allowed(r.to, to_bytes, r.to_side, true) || !allowed(r.from, from_bytes, r.from_side, false)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (s->capturing()) return capture_node(*s, CU_GRAPH_NODE_TYPE_MEMCPY, work_of(c, r));
    scheduler& work = here().work;
    const bool from_stays = r.from_side == side::device || stays(r.from);
    const bool to_stays = r.to_side == side::device || stays(r.to);
    if (!r.wait && to_stays && from_stays) {
      work.submit(s, make_task([to = r.to, from = r.from, size] { return move_checked(to, from, size); }));
      return CUDA_SUCCESS;
    }
    if (!r.wait && to_stays && from_bytes <= staging_limit) {
      const auto* bytes = static_cast<const std::byte*>(pointer(r.from));
      work.submit(s, make_task([to = r.to, size, staged = std::vector<std::byte>(bytes, bytes + from_bytes)] {
                    return move_checked(to, address_of(staged.data()), size);
                  }));
      return CUDA_SUCCESS;
    }
    work.run(s, make_task([to = r.to, from = r.from, size] { return move_checked(to, from, size); }));
    return static_cast<CUresult>(own.error());
  });
}

request linear(std::uint64_t to, side to_side, std::uint64_t from, side from_side, std::size_t bytes) {
  request r;
  r.to = to;
  r.from = from;
  r.to_side = to_side;
  r.from_side = from_side;
  r.size.width = bytes;
  return r;
}

CUresult copy_now(request r, bool per_thread) {
  r.per_thread = per_thread;
  // Between device ranges the host need not wait: nobody can see the difference.
  r.wait = r.to_side != side::device || r.from_side != side::device;
  return copy(r);
}

CUresult copy_later(request r, CUstream stream, bool per_thread) {
  r.stream = stream;
  r.per_thread = per_thread;
  return copy(r);
}

template <bool PerThread>
struct copies {
  static CUresult any(CUdeviceptr to, CUdeviceptr from, std::size_t n) {
    return copy_now(linear(to, side::either, from, side::either, n), PerThread);
  }
  static CUresult in(CUdeviceptr to, const void* from, std::size_t n) {
    return copy_now(linear(to, side::device, address_of(from), side::host, n), PerThread);
  }
  static CUresult out(void* to, CUdeviceptr from, std::size_t n) {
    return copy_now(linear(address_of(to), side::host, from, side::device, n), PerThread);
  }
  static CUresult across(CUdeviceptr to, CUdeviceptr from, std::size_t n) {
    return copy_now(linear(to, side::device, from, side::device, n), PerThread);
  }
  static CUresult any_async(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream s) {
    return copy_later(linear(to, side::either, from, side::either, n), s, PerThread);
  }
  static CUresult in_async(CUdeviceptr to, const void* from, std::size_t n, CUstream s) {
    return copy_later(linear(to, side::device, address_of(from), side::host, n), s, PerThread);
  }
  static CUresult out_async(void* to, CUdeviceptr from, std::size_t n, CUstream s) {
    return copy_later(linear(address_of(to), side::host, from, side::device, n), s, PerThread);
  }
  static CUresult across_async(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream s) {
    return copy_later(linear(to, side::device, from, side::device, n), s, PerThread);
  }
  // There is one device: both contexts' memory is its own.
  static CUresult peer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t n) {
    return across(to, from, n);
  }
  static CUresult peer_async(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t n,
                             CUstream s) {
    return across_async(to, from, n, s);
  }
};

// --- two and three dimensions
// ---------------------------------------------------------------------------------------

/// Address and side of one end of a CUDA_MEMCPY2D/3D; arrays do not exist on this device.
bool end_of(CUmemorytype type, std::uint64_t host, std::uint64_t device, std::uint64_t& address,
            side& where) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return address = host, where = side::host, true;
    case CU_MEMORYTYPE_DEVICE:
      return address = device, where = side::device, true;
    case CU_MEMORYTYPE_UNIFIED:
      return address = device, where = side::either, true;
    default:
      return false;
  }
}

CUresult request_of(const CUDA_MEMCPY2D& p, request& r) {
  if (!end_of(p.dstMemoryType, address_of(p.dstHost), p.dstDevice, r.to, r.to_side) ||
      !end_of(p.srcMemoryType, address_of(p.srcHost), p.srcDevice, r.from, r.from_side)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  r.size = {.width = p.WidthInBytes, .height = p.Height, .to_pitch = p.dstPitch, .from_pitch = p.srcPitch};
  if (p.Height > 1 && (p.dstPitch < p.WidthInBytes || p.srcPitch < p.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  r.to += p.dstY * p.dstPitch + p.dstXInBytes;
  r.from += p.srcY * p.srcPitch + p.srcXInBytes;
  return CUDA_SUCCESS;
}

CUresult request_of(const CUDA_MEMCPY3D& p, request& r) {
  if (!end_of(p.dstMemoryType, address_of(p.dstHost), p.dstDevice, r.to, r.to_side) ||
      !end_of(p.srcMemoryType, address_of(p.srcHost), p.srcDevice, r.from, r.from_side)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  r.size = {.width = p.WidthInBytes,
            .height = p.Height,
            .depth = p.Depth,
            .to_pitch = p.dstPitch,
            .to_slice = p.dstPitch * p.dstHeight,
            .from_pitch = p.srcPitch,
            .from_slice = p.srcPitch * p.srcHeight};
  if (p.Height > 1 && (p.dstPitch < p.WidthInBytes || p.srcPitch < p.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (p.Depth > 1 && (p.dstHeight < p.Height || p.srcHeight < p.Height)) return CUDA_ERROR_INVALID_VALUE;
  r.to += p.dstZ * r.size.to_slice + p.dstY * p.dstPitch + p.dstXInBytes;
  r.from += p.srcZ * r.size.from_slice + p.srcY * p.srcPitch + p.srcXInBytes;
  return CUDA_SUCCESS;
}

template <class Parameters, bool PerThread>
CUresult copy_shaped(const Parameters* p) {
  request r;
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = request_of(*p, r); bad != CUDA_SUCCESS) return bad;
  return copy_now(r, PerThread);
}

template <class Parameters, bool PerThread>
CUresult copy_shaped_async(const Parameters* p, CUstream stream) {
  request r;
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = request_of(*p, r); bad != CUDA_SUCCESS) return bad;
  return copy_later(r, stream, PerThread);
}

// --- fills
// ----------------------------------------------------------------------------------------------------------

template <class T>
void fill_row(std::uint64_t to, T value, std::size_t count) {
  if constexpr (sizeof(T) == 1) {
    std::memset(pointer(to), value, count);
  } else {
    std::fill_n(static_cast<T*>(pointer(to)), count, value);
  }
}

template <class T>
CUresult fill(CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height,
              CUstream handle, bool per_thread) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, handle, per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (to % sizeof(T) != 0 || (height > 1 && pitch % sizeof(T) != 0)) return CUDA_ERROR_INVALID_VALUE;
    if (width > ~std::size_t{0} / sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    const shape size{.width = width * sizeof(T), .height = height, .to_pitch = pitch};
    if (height > 1 && pitch < size.width) return CUDA_ERROR_INVALID_VALUE;
    if (!here().store->accessible(to, size.extent(pitch, 0), true)) return CUDA_ERROR_INVALID_VALUE;
    const auto body = [=] {
      const memory::flight flight(*here().store);
      for (std::size_t y = 0; y < height; ++y) fill_row(to + y * pitch, value, width);
      return CUDA_SUCCESS;
    };
    if (s->capturing()) {
      const CUDA_MEMSET_NODE_PARAMS_v2 about{to,    pitch,  static_cast<unsigned>(value),          sizeof(T),
                                             width, height, reinterpret_cast<CUcontext>(c->handle)};
      return capture_node(*s, CU_GRAPH_NODE_TYPE_MEMSET, fill_work{about, c, body});
    }
    here().work.submit(s, make_task(body));
    return CUDA_SUCCESS;
  });
}

template <class T, bool PerThread>
struct fills {
  static CUresult row(CUdeviceptr to, T value, std::size_t n) {
    return fill(to, 0, value, n, 1, nullptr, PerThread);
  }
  static CUresult row_async(CUdeviceptr to, T value, std::size_t n, CUstream s) {
    return fill(to, 0, value, n, 1, s, PerThread);
  }
  static CUresult rows(CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height) {
    return fill(to, pitch, value, width, height, nullptr, PerThread);
  }
  static CUresult rows_async(CUdeviceptr to, std::size_t pitch, T value, std::size_t width,
                             std::size_t height, CUstream s) {
    return fill(to, pitch, value, width, height, s, PerThread);
  }
};

template <class T>
void fill_rows(const CUDA_MEMSET_NODE_PARAMS_v2& p) {
  const memory::flight flight(*here().store);
  for (std::size_t y = 0; y < p.height; ++y) fill_row(p.dst + y * p.pitch, static_cast<T>(p.value), p.width);
}

}  // namespace

CUresult prepare_copy(const context_ptr& c, const CUDA_MEMCPY3D& p, copy_work& out) {
  request r;
  if (const CUresult bad = request_of(p, r); bad != CUDA_SUCCESS) return bad;
  if (r.size.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (!allowed(r.to, r.size.extent(r.size.to_pitch, r.size.to_slice), r.to_side, true) ||
      !allowed(r.from, r.size.extent(r.size.from_pitch, r.size.from_slice), r.from_side, false)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out = work_of(c, r);
  out.about = p;
  return CUDA_SUCCESS;
}

CUresult prepare_fill(const context_ptr& c, const CUDA_MEMSET_NODE_PARAMS_v2& p, fill_work& out) {
  const bool size_known = p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4;
  if (!size_known || p.width == 0 || p.height == 0 || p.dst % p.elementSize != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (p.width > ~std::size_t{0} / p.elementSize) return CUDA_ERROR_INVALID_VALUE;
  const shape size{.width = p.width * p.elementSize, .height = p.height, .to_pitch = p.pitch};
  if (p.height > 1 && (p.pitch < size.width || p.pitch % p.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (!here().store->accessible(p.dst, size.extent(p.pitch, 0), true)) return CUDA_ERROR_INVALID_VALUE;
  out = {p, c, [p] {
           if (p.elementSize == 1) fill_rows<unsigned char>(p);
           if (p.elementSize == 2) fill_rows<unsigned short>(p);
           if (p.elementSize == 4) fill_rows<unsigned>(p);
           return CUDA_SUCCESS;
         }};
  return CUDA_SUCCESS;
}

void fill_copy_entries(api::driver_table& t) {
  using legacy = copies<false>;
  using own = copies<true>;
  t.cuMemcpy = legacy::any;
  t.cuMemcpy_ptds = own::any;
  t.cuMemcpyAsync = legacy::any_async;
  t.cuMemcpyAsync_ptsz = own::any_async;
  t.cuMemcpyHtoD_v2 = legacy::in;
  t.cuMemcpyHtoD_v2_ptds = own::in;
  t.cuMemcpyHtoDAsync_v2 = legacy::in_async;
  t.cuMemcpyHtoDAsync_v2_ptsz = own::in_async;
  t.cuMemcpyDtoH_v2 = legacy::out;
  t.cuMemcpyDtoH_v2_ptds = own::out;
  t.cuMemcpyDtoHAsync_v2 = legacy::out_async;
  t.cuMemcpyDtoHAsync_v2_ptsz = own::out_async;
  t.cuMemcpyDtoD_v2 = legacy::across;
  t.cuMemcpyDtoD_v2_ptds = own::across;
  t.cuMemcpyDtoDAsync_v2 = legacy::across_async;
  t.cuMemcpyDtoDAsync_v2_ptsz = own::across_async;
  t.cuMemcpyPeer = legacy::peer;
  t.cuMemcpyPeer_ptds = own::peer;
  t.cuMemcpyPeerAsync = legacy::peer_async;
  t.cuMemcpyPeerAsync_ptsz = own::peer_async;
  t.cuMemcpy2D_v2 = t.cuMemcpy2DUnaligned_v2 = copy_shaped<CUDA_MEMCPY2D, false>;
  t.cuMemcpy2D_v2_ptds = t.cuMemcpy2DUnaligned_v2_ptds = copy_shaped<CUDA_MEMCPY2D, true>;
  t.cuMemcpy2DAsync_v2 = copy_shaped_async<CUDA_MEMCPY2D, false>;
  t.cuMemcpy2DAsync_v2_ptsz = copy_shaped_async<CUDA_MEMCPY2D, true>;
  t.cuMemcpy3D_v2 = copy_shaped<CUDA_MEMCPY3D, false>;
  t.cuMemcpy3D_v2_ptds = copy_shaped<CUDA_MEMCPY3D, true>;
  t.cuMemcpy3DAsync_v2 = copy_shaped_async<CUDA_MEMCPY3D, false>;
  t.cuMemcpy3DAsync_v2_ptsz = copy_shaped_async<CUDA_MEMCPY3D, true>;

#define OUTBOARD_FILLS(bits, type)                              \
  t.cuMemsetD##bits##_v2 = fills<type, false>::row;             \
  t.cuMemsetD##bits##_v2_ptds = fills<type, true>::row;         \
  t.cuMemsetD##bits##Async = fills<type, false>::row_async;     \
  t.cuMemsetD##bits##Async_ptsz = fills<type, true>::row_async; \
  t.cuMemsetD2D##bits##_v2 = fills<type, false>::rows;          \
  t.cuMemsetD2D##bits##_v2_ptds = fills<type, true>::rows;      \
  t.cuMemsetD2D##bits##Async = fills<type, false>::rows_async;  \
  t.cuMemsetD2D##bits##Async_ptsz = fills<type, true>::rows_async;
  OUTBOARD_FILLS(8, unsigned char)
  OUTBOARD_FILLS(16, unsigned short)
  OUTBOARD_FILLS(32, unsigned)
#undef OUTBOARD_FILLS
}

}  // namespace outboard::device::cpu
