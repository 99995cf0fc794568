#include "backend/opencl/extensions.hh"

#include "backend/opencl/questions.hh"
#include "backend/opencl/session.hh"

namespace outboard::backend::opencl {
namespace {

using api::opencl::function_table;

template <class Answer, class Ask, class Object>
Answer answer_of(Ask ask, Object object, cl_uint name) {
  return value_of<Answer>([&](std::size_t size, void* to, std::size_t* wanted) {
           return ask && object ? ask(object, name, size, to, wanted) : CL_INVALID_OPERATION;
         })
      .value_or(Answer{});
}

}  // namespace

std::vector<std::uint32_t> extension_functions_of(const function_table& table, cl_platform_id platform) {
  std::vector<std::uint32_t> codes;
  for (const api::opencl::extension_function& each : api::opencl::extension_functions()) {
    if (find_extension_function(table, platform, each.name))
      codes.push_back(static_cast<std::uint32_t>(each.code));
  }
  return codes;
}

void* find_extension_function(const function_table& table, cl_platform_id platform, std::string_view name) {
  auto* const find = table.clGetExtensionFunctionAddressForPlatform;
  return find ? find(platform, name.data()) : nullptr;
}

cl_platform_id platform_of(const function_table&, cl_platform_id platform) { return platform; }

cl_platform_id platform_of(const function_table& table, cl_device_id device) {
  return answer_of<cl_platform_id>(table.clGetDeviceInfo, device, CL_DEVICE_PLATFORM);
}

cl_platform_id platform_of(const function_table& table, cl_context context) {
  const std::vector<cl_device_id> devices =
      context ? devices_of(table, context) : std::vector<cl_device_id>();
  return devices.empty() ? nullptr : platform_of(table, devices.front());
}

cl_platform_id platform_of(const function_table& table, cl_command_queue queue) {
  return platform_of(table, answer_of<cl_device_id>(table.clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE));
}

cl_platform_id platform_of(const function_table& table, cl_mem memory) {
  return platform_of(table, answer_of<cl_context>(table.clGetMemObjectInfo, memory, CL_MEM_CONTEXT));
}

cl_platform_id platform_of(const function_table& table, cl_program program) {
  return platform_of(table, answer_of<cl_context>(table.clGetProgramInfo, program, CL_PROGRAM_CONTEXT));
}

cl_platform_id platform_of(const function_table& table, cl_kernel kernel) {
  return platform_of(table, answer_of<cl_context>(table.clGetKernelInfo, kernel, CL_KERNEL_CONTEXT));
}

cl_platform_id platform_of(const function_table& table, cl_event event) {
  return platform_of(table, answer_of<cl_context>(table.clGetEventInfo, event, CL_EVENT_CONTEXT));
}

cl_platform_id platform_of(const function_table& table, cl_sampler sampler) {
  return platform_of(table, answer_of<cl_context>(table.clGetSamplerInfo, sampler, CL_SAMPLER_CONTEXT));
}

}  // namespace outboard::backend::opencl
