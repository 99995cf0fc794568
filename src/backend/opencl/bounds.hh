// Checks that what a command names lies in its memory. This happens before a platform sees the numbers,
// because they come from a client, and some platforms add them up with overflows. CL_SUCCESS, or what is
// wrong. Pure functions; any thread.
#pragma once

#include "api/opencl/table.hh"
#include "marshal/opencl/box.hh"

namespace outboard::backend::opencl {

cl_int check_row(const api::opencl::function_table& table, cl_mem buffer, std::size_t offset,
                 std::size_t size);
/// `made` gets the box with its pitches filled in, if it is one.
cl_int check_box(const api::opencl::function_table& table, cl_mem buffer, const std::size_t* origin,
                 const std::size_t* region, std::size_t row_pitch, std::size_t slice_pitch,
                 marshal::opencl::box& made);
/// `bytes` gets the size of the region without gaps.
cl_int check_region(const api::opencl::function_table& table, cl_mem image, const std::size_t* origin,
                    const std::size_t* region, std::size_t& bytes);
/// Checks an image that was made of another object's memory: all its rows must lie there.
cl_int check_shown(const api::opencl::function_table& table, cl_mem image, const cl_image_desc& about);

}  // namespace outboard::backend::opencl
