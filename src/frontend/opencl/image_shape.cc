#include "frontend/opencl/image_shape.hh"

namespace outboard::frontend::opencl {

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

cl_int check_region(const memory_info& image, const std::size_t* origin, const std::size_t* region) {
  if (!origin || !region) return CL_INVALID_VALUE;
  const auto extent = extent_of(image.shape);
  for (std::size_t i = 0; i < 3; ++i) {
    if (region[i] == 0 || region[i] > extent[i] || origin[i] > extent[i] - region[i]) return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

bool set_box(box& b, const memory_info& image, const std::size_t* region, std::size_t row_pitch,
             std::size_t slice_pitch) {
  constexpr std::size_t origin[3] = {};
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(region[0], image.made.element_size, &bytes)) return false;
  // Its layers are what other images have as rows.
  const bool rows_are_layers = image.shape.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  if (rows_are_layers && slice_pitch) row_pitch = slice_pitch, slice_pitch = 0;
  const std::size_t in_bytes[3] = {bytes, region[1], region[2]};
  return b.set(origin, in_bytes, row_pitch, region[2] > 1 ? slice_pitch : 0);
}

}  // namespace outboard::frontend::opencl
