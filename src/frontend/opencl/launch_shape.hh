// Checks whether a device would refuse a launch at once. Pure functions of what the front-end knows.
#pragma once

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/link.hh"
#include "marshal/opencl/box.hh"

namespace outboard::frontend::opencl {

using marshal::opencl::box;

struct shape_check {
  cl_int code = CL_SUCCESS;
  bool certain = true;  ///< else the device may know better
};

/// What the build says of this kernel on this device; nullptr: nothing.
const marshal::opencl::work_group_facts* facts_for(const kernel_info& kernel, cl_device_id device);

shape_check check_shape(const kernel_info& kernel, cl_device_id device, cl_uint dimensions,
                        const std::size_t* offset, const std::size_t* global, const std::size_t* local);

}  // namespace outboard::frontend::opencl
