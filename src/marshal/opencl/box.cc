#include "marshal/opencl/box.hh"

namespace outboard::marshal::opencl {

bool box::set(const std::size_t* origin, const std::size_t* region, std::size_t row_pitch,
              std::size_t slice_pitch) {
  if (!origin || !region || !region[0] || !region[1] || !region[2]) return false;
  row = row_pitch ? row_pitch : region[0];
  if (row < region[0]) return false;
  std::size_t least = 0, end = 0, rows = 0;
  if (__builtin_mul_overflow(row, region[1], &least)) return false;
  slice = slice_pitch ? slice_pitch : least;
  if (slice < least || slice % row != 0) return false;
  const bool over =
      __builtin_mul_overflow(origin[2], slice, &first) || __builtin_mul_overflow(origin[1], row, &rows) ||
      __builtin_add_overflow(first, rows, &first) || __builtin_add_overflow(first, origin[0], &first) ||
      __builtin_mul_overflow(region[2] - 1, slice, &end) ||
      __builtin_add_overflow(end, (region[1] - 1) * row, &end) ||
      __builtin_add_overflow(end, region[0], &extent) || __builtin_add_overflow(first, extent, &end);
  bytes = region[0] * region[1] * region[2];  // not more than the extent, so no overflow
  return !over;
}

std::array<std::size_t, 3> extent_of(const cl_image_desc& shape) {
  switch (shape.image_type) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return {shape.image_width, shape.image_array_size, 1};
    case CL_MEM_OBJECT_IMAGE2D:
      return {shape.image_width, shape.image_height, 1};
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return {shape.image_width, shape.image_height, shape.image_array_size};
    case CL_MEM_OBJECT_IMAGE3D:
      return {shape.image_width, shape.image_height, shape.image_depth};
    default:
      return {shape.image_width, 1, 1};
  }
}

bool lies_inside(const std::array<std::size_t, 3>& extent, const std::size_t* origin,
                 const std::size_t* region) {
  if (!origin || !region) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (region[i] == 0 || !lies_inside(extent[i], origin[i], region[i])) return false;
  }
  return true;
}

}  // namespace outboard::marshal::opencl
