// The bodies of requests about arrays, boxes, textures and surfaces: as those of bodies.hh. Values; no thread
// rules.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

/// One side of a copy of a box: where the box begins. Of `host` only the kind counts: its bytes travel
/// packed.
enum class box_kind : std::uint32_t { host = 1, device = 2, array = 3 };
struct box_side {
  std::uint32_t kind = 0;
  std::uint32_t level = 0;            ///< as the program gave it; the driver wants 0
  std::uint64_t place = 0;            ///< device address or array
  std::uint64_t x = 0, y = 0, z = 0;  ///< x in bytes
  std::uint64_t pitch = 0, rows = 0;  ///< device memory: bytes from row to row, rows from slice to slice
  std::uint64_t context = 0;          ///< whose the memory is; 0: the current one's
};

/// cuMemcpy3D_v2: every copy of two or three dimensions. From the host: the bytes follow, row behind row. To
/// the host: they come as data frames, packed alike.
struct box_copy_body {
  box_side to, from;
  std::uint64_t width = 0, height = 0, depth = 0;  ///< width in bytes
  std::uint64_t stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(to, from, width, height, depth, stream, how)
};

/// cuMemcpyHtoA_v2: the bytes follow. cuMemcpyAtoH_v2: they come as data frames.
struct array_copy_body {
  std::uint64_t array = 0, offset = 0, size = 0, stream = 0;
  flavour how = flavour::sync;
  OUTBOARD_FIELDS(array, offset, size, stream, how)
};

/// cuArray3DCreate_v2 (levels 0), cuMipmappedArrayCreate: a CUDA_ARRAY3D_DESCRIPTOR.
struct array_body {
  std::uint64_t handle = 0, width = 0, height = 0, depth = 0;
  std::int32_t format = 0;
  std::uint32_t channels = 0, flags = 0, levels = 0;
  OUTBOARD_FIELDS(handle, width, height, depth, format, channels, flags, levels)
};

/// cuMipmappedArrayGetLevel, cuArrayGetPlane: `handle` is the new array's.
struct subarray_body {
  std::uint64_t parent = 0, handle = 0;
  std::uint32_t index = 0;
  OUTBOARD_FIELDS(parent, handle, index)
};

struct sparse_reply {
  std::array<std::uint32_t, 3> tile{};
  std::uint32_t tail_level = 0, flags = 0;
  std::uint64_t tail_size = 0;
  OUTBOARD_FIELDS(tile, tail_level, flags, tail_size)
};

/// cuTexObjectCreate, cuSurfObjectCreate. `value` is what kernels read: 0 at first, in a record what it was.
/// The resource by its type: an array's or mipmapped array's handle, or linear and pitched memory.
struct texture_body {
  std::uint64_t handle = 0, value = 0;
  std::int32_t type = 0, format = 0;
  std::uint64_t place = 0, width = 0, height = 0, pitch = 0;
  std::uint32_t channels = 0, resource_flags = 0;
  std::array<std::int32_t, 3> address_modes{};
  std::int32_t filter = 0, mipmap_filter = 0;
  std::uint32_t flags = 0, anisotropy = 0;
  std::array<std::uint32_t, 7> reals{};  ///< bits: level bias, lowest and highest level, border colour
  bool has_view = false;
  std::int32_t view_format = 0;
  std::array<std::uint64_t, 3> view_size{};
  std::array<std::uint32_t, 4> view_range{};  ///< first and last level, first and last layer
  OUTBOARD_FIELDS(handle, value, type, format, place, width, height, pitch, channels, resource_flags,
                  address_modes, filter, mipmap_filter, flags, anisotropy, reals, has_view, view_format,
                  view_size, view_range)
};

}  // namespace outboard::marshal
