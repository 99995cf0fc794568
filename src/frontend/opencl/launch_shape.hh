// Is a launch, or a box of bytes, one that a device would refuse at once? Pure functions of what the
// front-end knows.
#pragma once

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/link.hh"

namespace outboard::frontend::opencl {

/// A box of rows in a buffer, its pitches made whole.
struct box {
  std::size_t row = 0, slice = 0;  ///< pitches
  std::size_t first = 0;           ///< the first byte
  std::size_t extent = 0;          ///< from there to behind the last one, gaps included
  std::size_t bytes = 0;           ///< without gaps

  /// False: a null pointer, an empty region, a pitch that is too small, or more than a size can say.
  bool set(const std::size_t* origin, const std::size_t* region, std::size_t row_pitch,
           std::size_t slice_pitch);
};

struct shape_check {
  cl_int code = CL_SUCCESS;
  bool certain = true;  ///< else the device may know better
};

/// What the build says of this kernel on this device; nullptr: nothing.
const marshal::opencl::work_group_facts* facts_for(const kernel_info& kernel, cl_device_id device);

shape_check check_shape(const kernel_info& kernel, cl_device_id device, cl_uint dimensions,
                        const std::size_t* offset, const std::size_t* global, const std::size_t* local);

}  // namespace outboard::frontend::opencl
