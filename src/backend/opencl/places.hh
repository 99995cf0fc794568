// Does what a command names lie in its memory? Asked before a platform sees it: the numbers are a client's,
// and not every platform adds them up without running over. CL_SUCCESS, or what is wrong. No state.
#pragma once

#include "api/opencl/table.hh"
#include "marshal/opencl/box.hh"

namespace outboard::backend::opencl {

cl_int check_row(const api::opencl::function_table& table, cl_mem buffer, std::size_t offset,
                 std::size_t size);
/// `made`: the box with its pitches made whole, if it is one.
cl_int check_box(const api::opencl::function_table& table, cl_mem buffer, const std::size_t* origin,
                 const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch,
                 marshal::opencl::box& made);
/// `bytes`: those of the region, without gaps.
cl_int check_region(const api::opencl::function_table& table, cl_mem image, const std::size_t* origin,
                    const std::size_t* region, std::size_t& bytes);
/// An image that was made of another object's memory: all of its rows lie in that.
cl_int check_shown(const api::opencl::function_table& table, cl_mem image, const cl_image_desc& about);

}  // namespace outboard::backend::opencl
