// Would a device refuse a launch at once? Pure functions of what the front-end knows.
#pragma once

#include "frontend/opencl/back_ends.hh"
#include "frontend/opencl/kinds.hh"
#include "marshal/opencl/box.hh"

namespace outboard::frontend::opencl {

using marshal::opencl::box;

struct shape_check {
  cl_int code = CL_SUCCESS;
  bool certain = true;  ///< false: the device may know better
};

/// The build's facts about this kernel on this device; nullptr: there are none.
const marshal::opencl::work_group_facts* facts_for(const kernel_info& kernel, cl_device_id device);

shape_check check_shape(const kernel_info& kernel, cl_device_id device, cl_uint dimensions,
                        const std::size_t* offset, const std::size_t* global, const std::size_t* local);

}  // namespace outboard::frontend::opencl
