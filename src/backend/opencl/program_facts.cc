#include "backend/opencl/program_facts.hh"

#include <algorithm>
#include <span>

#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

device_build build_of(const function_table& table, cl_program program, cl_device_id device) {
  const auto ask = [&](cl_program_build_info name) {
    return [&table, program, device, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetProgramBuildInfo(program, device, name, size, to, wanted);
    };
  };
  device_build b;
  b.status = value_of<cl_build_status>(ask(CL_PROGRAM_BUILD_STATUS)).value_or(CL_BUILD_NONE);
  b.binary_type = value_of<cl_program_binary_type>(ask(CL_PROGRAM_BINARY_TYPE)).value_or(0);
  b.global_variables = value_of<std::size_t>(ask(CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)).value_or(0);
  b.options = text_of(ask(CL_PROGRAM_BUILD_OPTIONS));
  b.log = text_of(ask(CL_PROGRAM_BUILD_LOG));
  return b;
}

argument_facts argument_of(const function_table& table, cl_kernel kernel, cl_uint index) {
  argument_facts a;
  if (!table.clGetKernelArgInfo) return a;
  const auto ask = [&](cl_kernel_arg_info name) {
    return [&table, kernel, index, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelArgInfo(kernel, index, name, size, to, wanted);
    };
  };
  const auto address = value_of<cl_kernel_arg_address_qualifier>(ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER));
  a.known = address.has_value();
  if (!a.known) return a;
  a.address = *address;
  a.access = value_of<cl_kernel_arg_access_qualifier>(ask(CL_KERNEL_ARG_ACCESS_QUALIFIER)).value_or(0);
  a.type_qualifier = value_of<cl_kernel_arg_type_qualifier>(ask(CL_KERNEL_ARG_TYPE_QUALIFIER)).value_or(0);
  a.type = text_of(ask(CL_KERNEL_ARG_TYPE_NAME));
  a.name = text_of(ask(CL_KERNEL_ARG_NAME));
  return a;
}

work_group_facts work_group_of(const function_table& table, cl_kernel kernel, cl_device_id device) {
  const auto ask = [&](cl_kernel_work_group_info name) {
    return [&table, kernel, device, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelWorkGroupInfo(kernel, device, name, size, to, wanted);
    };
  };
  work_group_facts w;
  w.size = value_of<std::size_t>(ask(CL_KERNEL_WORK_GROUP_SIZE)).value_or(0);
  w.multiple = value_of<std::size_t>(ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)).value_or(0);
  w.local_memory = value_of<cl_ulong>(ask(CL_KERNEL_LOCAL_MEM_SIZE)).value_or(0);
  w.private_memory = value_of<cl_ulong>(ask(CL_KERNEL_PRIVATE_MEM_SIZE)).value_or(0);
  const auto compiled = list_of<std::size_t>(ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE));
  w.compiled.assign(compiled.begin(), compiled.end());
  w.compiled.resize(3);
  return w;
}

kernel_facts facts_of(const function_table& table, cl_kernel kernel, std::span<const cl_device_id> devices) {
  const auto ask = [&](cl_kernel_info name) {
    return [&table, kernel, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelInfo(kernel, name, size, to, wanted);
    };
  };
  kernel_facts k;
  k.name = text_of(ask(CL_KERNEL_FUNCTION_NAME));
  k.attributes = text_of(ask(CL_KERNEL_ATTRIBUTES));
  const cl_uint arguments = value_of<cl_uint>(ask(CL_KERNEL_NUM_ARGS)).value_or(0);
  for (cl_uint i = 0; i < arguments; ++i) k.arguments.push_back(argument_of(table, kernel, i));
  for (const cl_device_id device : devices) k.devices.push_back(work_group_of(table, kernel, device));
  return k;
}

void add_kernels(const function_table& table, cl_program program, std::span<const cl_device_id> devices,
                 build_reply& reply) {
  cl_uint count = 0;
  if (table.clCreateKernelsInProgram(program, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_kernel> kernels(count);
  if (table.clCreateKernelsInProgram(program, count, kernels.data(), nullptr) != CL_SUCCESS) return;
  for (const cl_kernel kernel : kernels) {
    reply.kernels.push_back(facts_of(table, kernel, devices));
    table.clReleaseKernel(kernel);
  }
}

}  // namespace

std::vector<cl_device_id> devices_of(const function_table& table, cl_program program) {
  return list_of<cl_device_id>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetProgramInfo(program, CL_PROGRAM_DEVICES, size, to, wanted);
  });
}

std::vector<std::size_t> binary_sizes(const function_table& table, cl_program program) {
  return list_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, size, to, wanted);
  });
}

void describe(const function_table& table, cl_program program, const named_devices& names, bool kernels,
              build_reply& reply) {
  const auto devices = devices_of(table, program);
  for (const cl_device_id device : devices) {
    const auto named = std::ranges::find(names, device, &named_devices::value_type::first);
    reply.devices.push_back(build_of(table, program, device));
    reply.devices.back().device = named == names.end() ? 0 : named->second;
  }
  if (kernels) add_kernels(table, program, devices, reply);
}

}  // namespace outboard::backend::opencl
