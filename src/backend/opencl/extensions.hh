// Functions of extensions: their addresses differ from platform to platform. Pure functions; any thread.
#pragma once

#include <vector>

#include "api/opencl/extensions.hh"
#include "api/opencl/table.hh"

namespace outboard::backend::opencl {

/// The opcodes of those that the platform has.
std::vector<std::uint32_t> extension_functions_of(const api::opencl::function_table& table,
                                                  cl_platform_id platform);

/// nullptr: the object does not say.
cl_platform_id platform_of(const api::opencl::function_table& table, cl_platform_id platform);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_device_id device);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_context context);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_command_queue queue);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_mem memory);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_program program);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_kernel kernel);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_event event);
cl_platform_id platform_of(const api::opencl::function_table& table, cl_sampler sampler);

void* find_extension_function(const api::opencl::function_table& table, cl_platform_id platform,
                              std::string_view name);

/// The function of the platform that this object is of; nullptr: it has none.
template <api::opencl::opcode Op, class Object>
auto* extension_entry(const api::opencl::function_table& table, Object object) {
  using prototype = typename api::function<Op>::prototype;
  const cl_platform_id platform = platform_of(table, object);
  return reinterpret_cast<prototype*>(
      platform ? find_extension_function(table, platform, api::function<Op>::name) : nullptr);
}

}  // namespace outboard::backend::opencl
