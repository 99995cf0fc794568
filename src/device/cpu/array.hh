// CUDA arrays of the cpu device: texels row behind row in device memory, levels and layers one behind the
// other. Objects are immutable but for their handle tables; any thread. An array's memory dies with its
// handle, a level's with the mipmapped array's.
#pragma once

#include <mutex>
#include <vector>

#include "device/cpu/context.hh"
#include "ptx/run/texture.hh"

namespace outboard::device::cpu {

class memory;

struct array_object {
  context_ptr owner;
  CUDA_ARRAY3D_DESCRIPTOR about{};
  ptx::image memory;        ///< one level
  std::uint64_t block = 0;  ///< device memory; 0: a level, whose memory is the mipmapped array's
};

struct mipmapped_array_object {
  context_ptr owner;
  CUDA_ARRAY3D_DESCRIPTOR about{};
  ptx::image memory;
  std::uint64_t block = 0;
  std::mutex mutex;
  std::vector<std::uint64_t> levels;  ///< handles given out, 0 where not yet
};

/// The texel format of a CUarray_format. False: one that this device does not have.
bool texel_of(CUarray_format format, ptx::texel& out);

/// Whether the driver API defines the format; few of them have texels here.
bool is_format(CUarray_format format);

/// An array's sizes for a kernel or copy, none of them 0.
struct array_size {
  std::uint32_t width = 1, height = 1, depth = 1;
};
array_size size_of(const CUDA_ARRAY3D_DESCRIPTOR& about);

}  // namespace outboard::device::cpu
