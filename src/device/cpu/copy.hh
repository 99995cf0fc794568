// One copy between places in memory, up to three dimensions, in stream order: what every entry that copies
// comes down to. Internal to the cpu device; any thread.
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

struct copy_request {
  std::uint64_t to = 0, from = 0;
  side to_side = side::either, from_side = side::either;
  copy_shape size;
  CUstream stream = nullptr;
  bool per_thread = false, wait = false;
  std::optional<CUDA_MEMCPY3D> asked;  ///< how the program put it, where arrays are part of it
};

struct copy_work;  // of a graph's node

/// Every device range of the copy may be accessed.
bool allowed(const copy_request& r);

/// The copy as a node of a graph: host memory is read and written at each launch.
copy_work work_of(const context_ptr& c, const copy_request& r);

/// A copy is refused at the call when a device range is not all accessible. From pageable host memory the
/// source may be reused when the call returns, so small sources are staged and large ones are copied before
/// it returns; to pageable memory the bytes are there when the call returns.
CUresult copy(const copy_request& r);

/// For entries without a stream. Between device ranges the host need not wait: nobody can see the difference.
/// Page-locked, registered or managed memory lies there: what is written in a synchronous call can be read
/// when that returns.
bool of_host(std::uint64_t address);

CUresult copy_now(copy_request r, bool per_thread);
CUresult copy_later(copy_request r, CUstream stream, bool per_thread);

}  // namespace outboard::device::cpu
