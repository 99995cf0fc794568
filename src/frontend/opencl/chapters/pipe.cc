// Pipes: made on the device, passed to kernels; the host has nothing to do with what is in them.
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {

cl_mem clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_size, cl_uint packets,
                    const cl_pipe_properties* properties, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  const auto any = [in](auto&& fits) { return std::any_of(in->devices.begin(), in->devices.end(), fits); };
  const auto able = [](cl_device_id device) {
    return find<device_info>(device)->number<cl_bool>(CL_DEVICE_PIPE_SUPPORT) != CL_FALSE;
  };
  if (!any(able)) return fail(errcode_ret, CL_INVALID_OPERATION);
  constexpr cl_mem_flags known = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
  if ((flags & ~known) != 0 || (properties && *properties)) return fail(errcode_ret, CL_INVALID_VALUE);
  const auto holds = [packet_size](cl_device_id device) {
    return packet_size <= find<device_info>(device)->number<cl_uint>(CL_DEVICE_PIPE_MAX_PACKET_SIZE);
  };
  if (packet_size == 0 || packets == 0 || !any(holds)) return fail(errcode_ret, CL_INVALID_PIPE_SIZE);
  auto info = std::make_unique<memory_info>();
  info->context = needed(context);
  info->type = CL_MEM_OBJECT_PIPE;
  info->flags = flags ? flags : CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
  info->packet_size = packet_size, info->packets = packets;
  const std::uint64_t bytes = std::uint64_t{packet_size} * packets;
  if (const cl_int code = memory_claim::take(*in, bytes, info->claim); code != CL_SUCCESS)
    return fail(errcode_ret, code);
  if (properties) info->properties.push_back(0);
  return create<cl_mem>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    message m(opcode::clCreatePipe);
    marshal::put_body(m.body(), marshal::opencl::pipe_body{id, id_of(context), flags, packet_size, packets});
    return m.call();
  });
}

cl_int clGetPipeInfo(cl_mem pipe, cl_pipe_info name, std::size_t size, void* value, std::size_t* wanted) {
  const auto* const info = find<memory_info>(pipe);
  if (!info || info->type != CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_PIPE_PACKET_SIZE:
      return to.one(info->packet_size);
    case CL_PIPE_MAX_PACKETS:
      return to.one(info->packets);
    case CL_PIPE_PROPERTIES:
      return to.list(info->properties);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace outboard::frontend::opencl::ends
