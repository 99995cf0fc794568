// How far an image reaches, and whether a region is inside it. Pure functions.
#pragma once

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/launch_shape.hh"

namespace outboard::frontend::opencl {

using marshal::opencl::extent_of;

/// CL_SUCCESS, or CL_INVALID_VALUE for a null pointer, an empty region, or one beyond the image.
cl_int check_region(const memory_info& image, const std::size_t* origin, const std::size_t* region);
/// The region's bytes in the program's memory, with the pitches that the program passes (0: rows without
/// gaps). An array of rows has its pitch in `slice_pitch`.
bool set_box(box& b, const memory_info& image, const std::size_t* region, std::size_t row_pitch,
             std::size_t slice_pitch);

}  // namespace outboard::frontend::opencl
