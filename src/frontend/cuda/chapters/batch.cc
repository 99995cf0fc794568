// Batches of copies, prefetches and discards: each is its parts in order, in one stream. What a batch may do
// beyond that (in any order, in one submission) nobody can observe.
#include <algorithm>
#include <cstring>

#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

/// A batch has a stream of its own: the default streams are refused.
CUresult check_batch(const void* first, const std::size_t* sizes, std::size_t count, CUstream stream) {
  if (const CUresult code = process::instance().gate(this_lane()); code != CUDA_SUCCESS) return code;
  if (!first || !sizes || count == 0 || default_stream(stream)) return CUDA_ERROR_INVALID_VALUE;
  return stream_ok(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Which part's attributes hold from where on: the first from 0, rising.
CUresult check_indices(const void* attributes, const std::size_t* indices, std::size_t n, std::size_t count) {
  if (!attributes || !indices || n == 0 || n > count || indices[0] != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 1; i < n; ++i) {
    if (indices[i] <= indices[i - 1] || indices[i] >= count) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

using copy_one = decltype(&ends::cuMemcpyAsync);

/// The source is read during the call: of page-locked memory a copy would else read when the stream comes to
/// it. What the device has is read by then if the stream is waited for.
CUresult copy_during_call(copy_one copy, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream,
                          bool& wait) {
  if (on_device(from)) return wait = true, copy(to, from, size, stream);
  if (!page_locked(from, 1) || !on_device(to)) return copy(to, from, size, stream);
  constexpr size_t piece = 4u << 20;
  std::vector<std::byte> bytes(std::min(piece, size));
  for (size_t done = 0; done < size;) {
    const size_t n = std::min(piece, size - done);
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(from + done), n);
    const CUresult code = copy(to + done, reinterpret_cast<CUdeviceptr>(bytes.data()), n, stream);
    if (code != CUDA_SUCCESS) return code;
    done += n;
  }
  return CUDA_SUCCESS;
}

CUresult copy_batch(copy_one copy, CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                    const CUmemcpyAttributes* attrs, const size_t* indices, size_t n, size_t* failed,
                    CUstream stream) {
  if (failed) *failed = ~size_t{0};
  if (const CUresult code = check_batch(dsts, sizes, count, stream); code != CUDA_SUCCESS) return code;
  if (const CUresult code = check_indices(attrs, indices, n, count); code != CUDA_SUCCESS || !srcs) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < n; ++i) {
    const auto order = attrs[i].srcAccessOrder;
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  bool wait = false;
  for (size_t i = 0, which = 0; i < count; ++i) {
    while (which + 1 < n && indices[which + 1] <= i) ++which;
    const bool now = attrs[which].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    const CUresult code = !sizes[i] ? CUDA_ERROR_INVALID_VALUE
                          : now     ? copy_during_call(copy, dsts[i], srcs[i], sizes[i], stream, wait)
                                    : copy(dsts[i], srcs[i], sizes[i], stream);
    if (code == CUDA_SUCCESS) continue;
    if (failed) *failed = i;
    return code;
  }
  return wait ? remote<api::opcode::cuStreamSynchronize>(stream) : CUDA_SUCCESS;
}

using prefetch_one = decltype(&ends::cuMemPrefetchAsync_v2);

CUresult prefetch_batch(prefetch_one prefetch, CUdeviceptr* at, size_t* sizes, size_t count,
                        const CUmemLocation* places, const size_t* indices, size_t n,
                        unsigned long long flags, CUstream stream) {
  if (const CUresult code = check_batch(at, sizes, count, stream); code != CUDA_SUCCESS) return code;
  if (const CUresult code = check_indices(places, indices, n, count); code != CUDA_SUCCESS) return code;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0, place = 0; i < count; ++i) {
    while (place + 1 < n && indices[place + 1] <= i) ++place;
    const CUresult code = prefetch(at[i], sizes[i], places[place], 0, stream);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

/// What was discarded may hold anything until it is written: so it may keep what it has.
CUresult discard_batch(const CUdeviceptr* at, const size_t* sizes, size_t count, unsigned long long flags,
                       CUstream stream) {
  if (const CUresult code = check_batch(at, sizes, count, stream); code != CUDA_SUCCESS) return code;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const auto block = process::instance().memory().addresses().find(at[i]);
    const bool inside = block && block->kind == memory_kind::managed && sizes[i] != 0 &&
                        sizes[i] <= block->size - (at[i] - block->base);
    if (!inside) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace ends {

#define OUTBOARD_COPIES                                                                         \
  CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs, \
      size_t *attrsIdxs, size_t numAttrs

CUresult cuMemcpyBatchAsync(OUTBOARD_COPIES, size_t* failIdx, CUstream stream) {
  return copy_batch(&ends::cuMemcpyAsync, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                    stream);
}
CUresult cuMemcpyBatchAsync_ptsz(OUTBOARD_COPIES, size_t* failIdx, CUstream stream) {
  return copy_batch(&ends::cuMemcpyAsync_ptsz, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                    stream);
}
CUresult cuMemcpyBatchAsync_v2(OUTBOARD_COPIES, CUstream stream) {
  return copy_batch(&ends::cuMemcpyAsync, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, nullptr,
                    stream);
}
CUresult cuMemcpyBatchAsync_v2_ptsz(OUTBOARD_COPIES, CUstream stream) {
  return copy_batch(&ends::cuMemcpyAsync_ptsz, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, nullptr,
                    stream);
}

#undef OUTBOARD_COPIES
#define OUTBOARD_PREFETCHES                                                                          \
  CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *places, size_t *indices, size_t n, \
      unsigned long long flags, CUstream stream

CUresult cuMemPrefetchBatchAsync(OUTBOARD_PREFETCHES) {
  return prefetch_batch(&ends::cuMemPrefetchAsync_v2, dptrs, sizes, count, places, indices, n, flags, stream);
}
CUresult cuMemPrefetchBatchAsync_ptsz(OUTBOARD_PREFETCHES) {
  return prefetch_batch(&ends::cuMemPrefetchAsync_v2_ptsz, dptrs, sizes, count, places, indices, n, flags,
                        stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(OUTBOARD_PREFETCHES) {
  return prefetch_batch(&ends::cuMemPrefetchAsync_v2, dptrs, sizes, count, places, indices, n, flags, stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(OUTBOARD_PREFETCHES) {
  return prefetch_batch(&ends::cuMemPrefetchAsync_v2_ptsz, dptrs, sizes, count, places, indices, n, flags,
                        stream);
}

#undef OUTBOARD_PREFETCHES

CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                CUstream stream) {
  return discard_batch(dptrs, sizes, count, flags, stream);
}
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                     unsigned long long flags, CUstream stream) {
  return discard_batch(dptrs, sizes, count, flags, stream);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
