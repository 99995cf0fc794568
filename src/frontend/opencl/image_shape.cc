#include "frontend/opencl/image_shape.hh"

namespace outboard::frontend::opencl {

cl_int check_region(const memory_info& image, const std::size_t* origin, const std::size_t* region) {
  return marshal::opencl::lies_inside(extent_of(image.shape), origin, region) ? CL_SUCCESS : CL_INVALID_VALUE;
}

bool set_box(box& b, const memory_info& image, const std::size_t* region, std::size_t row_pitch,
             std::size_t slice_pitch) {
  constexpr std::size_t origin[3] = {};
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(region[0], image.made.element_size, &bytes)) return false;
  // Its layers take the place of other images' rows.
  const bool rows_are_layers = image.shape.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  if (rows_are_layers && slice_pitch) row_pitch = slice_pitch, slice_pitch = 0;
  const std::size_t in_bytes[3] = {bytes, region[1], region[2]};
  return b.set(origin, in_bytes, row_pitch, region[2] > 1 ? slice_pitch : 0);
}

}  // namespace outboard::frontend::opencl
