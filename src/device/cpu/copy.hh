// One copy between places in memory, in up to three dimensions and in stream order. Every entry that copies
// uses it. Internal to the cpu device; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "device/cpu/context.hh"

namespace outboard::device::cpu {

enum class side { device, host, either };

/// For one dimension height and depth are 1. Pitch: bytes from row to row, slice: from plane to plane.
struct copy_shape {
  std::size_t width = 0, height = 1, depth = 1;
  std::size_t to_pitch = 0, to_slice = 0, from_pitch = 0, from_slice = 0;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  /// Bytes from the first to the last one touched; the largest number if the sum overflows, so that no range
  /// allows it.
  std::uint64_t extent(std::size_t pitch, std::size_t slice) const {
    std::uint64_t slices = 0, rows = 0, all = 0;
    const bool overflow = __builtin_mul_overflow(depth - 1, slice, &slices) ||
                          __builtin_mul_overflow(height - 1, pitch, &rows) ||
                          __builtin_add_overflow(slices, rows, &all) ||
                          __builtin_add_overflow(all, width, &all);
    return overflow ? ~std::uint64_t{0} : all;
  }
};

struct copy_request {
  std::uint64_t to = 0, from = 0;
  side to_side = side::either, from_side = side::either;
  copy_shape size;
  CUstream stream = nullptr;
  bool per_thread = false, wait = false;
  std::optional<CUDA_MEMCPY3D> asked;  ///< the program's own parameters, if arrays take part
};

struct copy_work;  // of a graph's node

/// True if every device range of the copy may be accessed.
bool allowed(const copy_request& r);

/// The copy as a node of a graph: host memory is read and written at each launch.
copy_work work_of(const context_ptr& c, const copy_request& r);

/// Refuses the copy at the call if any part of a device range is inaccessible. A pageable source may be
/// reused when the call returns, so small sources are staged and large ones are copied before it returns. In
/// a pageable destination the bytes have arrived when the call returns.
CUresult copy(const copy_request& r);

/// For entries without a stream. For copies between device ranges the host does not wait, because the program
/// cannot see the difference.
CUresult copy_now(copy_request r, bool per_thread);
CUresult copy_later(copy_request r, CUstream stream, bool per_thread);

}  // namespace outboard::device::cpu
