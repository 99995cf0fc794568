// Entries of the chapter memory that move bytes in a row: copies and fills, in stream order.
#include <cstring>

#include "device/cpu/copy.hh"
#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

copy_request linear(std::uint64_t to, side to_side, std::uint64_t from, side from_side, std::size_t bytes) {
  copy_request r;
  r.to = to;
  r.from = from;
  r.to_side = to_side;
  r.from_side = from_side;
  r.size.width = bytes;
  return r;
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
};

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
              CUstream handle, bool per_thread, bool synchronous) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, handle, per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (to % sizeof(T) != 0 || (height > 1 && pitch % sizeof(T) != 0)) return CUDA_ERROR_INVALID_VALUE;
    // In a row a driver's bytes are as many as fit in 64 bits.
    if (height > 1 && width > ~std::size_t{0} / sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    width = width * sizeof(T) / sizeof(T);
    if (width == 0) return CUDA_SUCCESS;
    const copy_shape size{.width = width * sizeof(T), .height = height, .to_pitch = pitch};
    if (height > 1 && pitch < size.width) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t extent = size.extent(pitch, 0);
    // Of a captured fill the address is nobody's business before the graph runs.
    if (!s->capturing() && !here().store->accessible(to, extent, true)) return CUDA_ERROR_INVALID_VALUE;
    const auto body = [=] {
      const memory::flight flight(*here().store);
      if (!here().store->accessible(to, extent, true)) return CUDA_ERROR_ILLEGAL_ADDRESS;
      recorded_span span(here().recorder);
      span.what.kind = api::work_kind::fill;
      span.what.to = api::memory_side::device;
      span.what.bytes = size.width * height;
      for (std::size_t y = 0; y < height; ++y) fill_row(to + y * pitch, value, width);
      return CUDA_SUCCESS;
    };
    if (s->capturing()) {
      const CUDA_MEMSET_NODE_PARAMS_v2 about{to,    pitch,  static_cast<unsigned>(value),          sizeof(T),
                                             width, height, reinterpret_cast<CUcontext>(c->handle)};
      return capture_node(*s, CU_GRAPH_NODE_TYPE_MEMSET, fill_work{about, c, body});
    }
    if (!synchronous || !of_host(to)) return here().work.submit(s, make_task(body)), CUDA_SUCCESS;
    here().work.run(s, make_task(body));
    return static_cast<CUresult>(own.error());
  });
}

template <class T, bool PerThread>
struct fills {
  static CUresult row(CUdeviceptr to, T value, std::size_t n) {
    return fill(to, 0, value, n, 1, nullptr, PerThread, true);
  }
  static CUresult row_async(CUdeviceptr to, T value, std::size_t n, CUstream s) {
    return fill(to, 0, value, n, 1, s, PerThread, false);
  }
  static CUresult rows(CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height) {
    return fill(to, pitch, value, width, height, nullptr, PerThread, true);
  }
  static CUresult rows_async(CUdeviceptr to, std::size_t pitch, T value, std::size_t width,
                             std::size_t height, CUstream s) {
    return fill(to, pitch, value, width, height, s, PerThread, false);
  }
};

/// A launch comes long after the node was made: its memory may have gone.
template <class T>
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS_v2& p, std::uint64_t extent) {
  const memory::flight flight(*here().store);
  if (!here().store->accessible(p.dst, extent, true)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (std::size_t y = 0; y < p.height; ++y) fill_row(p.dst + y * p.pitch, static_cast<T>(p.value), p.width);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult prepare_fill(const context_ptr& c, const CUDA_MEMSET_NODE_PARAMS_v2& p, fill_work& out) {
  const bool size_known = p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4;
  if (!size_known || p.width == 0 || p.height == 0 || p.dst % p.elementSize != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (p.width > ~std::size_t{0} / p.elementSize) return CUDA_ERROR_INVALID_VALUE;
  const copy_shape size{.width = p.width * p.elementSize, .height = p.height, .to_pitch = p.pitch};
  if (p.height > 1 && (p.pitch < size.width || p.pitch % p.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t extent = size.extent(p.pitch, 0);
  if (!here().store->accessible(p.dst, extent, true)) return CUDA_ERROR_INVALID_VALUE;
  out = {p, c, [p, extent] {
           if (p.elementSize == 1) return fill_rows<unsigned char>(p, extent);
           if (p.elementSize == 2) return fill_rows<unsigned short>(p, extent);
           return fill_rows<unsigned>(p, extent);
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
