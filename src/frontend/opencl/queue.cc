#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

constexpr cl_command_queue_properties host_bits =
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
constexpr cl_command_queue_properties device_bits = CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;

cl_int check(cl_context context, cl_device_id device, cl_command_queue_properties bits) {
  const auto* const in = find<context_info>(context);
  if (!in) return CL_INVALID_CONTEXT;
  const auto* const about = find<device_info>(device);
  if (!about || std::find(in->devices.begin(), in->devices.end(), device) == in->devices.end())
    return CL_INVALID_DEVICE;
  if ((bits & ~(host_bits | device_bits)) != 0) return CL_INVALID_VALUE;
  const auto able = about->number<cl_command_queue_properties>(CL_DEVICE_QUEUE_PROPERTIES);
  return (bits & ~able) != 0 ? CL_INVALID_QUEUE_PROPERTIES : CL_SUCCESS;
}

cl_command_queue make_queue(cl_context context, cl_device_id device, cl_command_queue_properties bits,
                            std::vector<cl_queue_properties> given, cl_int* errcode_ret) {
  marshal::opencl::queue_body body{0, id_of(context), id_of(device), {}};
  if (bits) body.properties = {CL_QUEUE_PROPERTIES, bits};
  auto info = std::make_unique<queue_info>();
  info->context = needed(context);
  info->device = device;
  info->bits = bits;
  info->properties = std::move(given);
  return create<cl_command_queue>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    body.handle = id;
    return post_body(opcode::clCreateCommandQueueWithProperties, body);
  });
}

}  // namespace

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties bits, cl_int* errcode_ret) {
  if (const cl_int code = check(context, device, bits); code != CL_SUCCESS) return fail(errcode_ret, code);
  return make_queue(context, device, bits, {}, errcode_ret);
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties* properties,
                                                    cl_int* errcode_ret) {
  cl_command_queue_properties bits = 0;
  std::vector<cl_queue_properties> given;
  cl_int code = CL_SUCCESS;
  for (const cl_queue_properties* p = properties; p && *p && code == CL_SUCCESS; p += 2) {
    given.insert(given.end(), {p[0], p[1]});
    if (p[0] == CL_QUEUE_PROPERTIES) {
      bits = p[1];
    } else {
      code = p[0] == CL_QUEUE_SIZE ? CL_INVALID_QUEUE_PROPERTIES : CL_INVALID_VALUE;
    }
  }
  if (properties) given.push_back(0);
  if (const cl_int wrong = check(context, device, bits); wrong != CL_SUCCESS) code = wrong;
  if (code != CL_SUCCESS) return fail(errcode_ret, code);
  return make_queue(context, device, bits, std::move(given), errcode_ret);
}

cl_int clRetainCommandQueue(cl_command_queue queue) { return retain(queue); }
cl_int clReleaseCommandQueue(cl_command_queue queue) { return release(queue); }

cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info name, std::size_t size,
                             void* value, std::size_t* wanted) {
  const auto* const info = find<queue_info>(queue);
  if (!info) return CL_INVALID_COMMAND_QUEUE;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_QUEUE_CONTEXT:
      return to.one(info->context.get());
    case CL_QUEUE_DEVICE:
      return to.one(info->device);
    case CL_QUEUE_REFERENCE_COUNT:
      return to.one(references(queue));
    case CL_QUEUE_PROPERTIES:
      return to.one(info->bits);
    case CL_QUEUE_PROPERTIES_ARRAY:
      return to.list(info->properties);
    case CL_QUEUE_DEVICE_DEFAULT:
      return to.one(cl_command_queue{nullptr});
    default:  // CL_QUEUE_SIZE: of queues on the device, which there are none of
      return name == CL_QUEUE_SIZE ? CL_INVALID_COMMAND_QUEUE : CL_INVALID_VALUE;
  }
}

/// Since version 1.1 a queue stays as it was made.
cl_int clSetCommandQueueProperty(cl_command_queue queue, cl_command_queue_properties, cl_bool,
                                 cl_command_queue_properties*) {
  return alive(queue) ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_QUEUE;
}

cl_int clFlush(cl_command_queue queue) {
  return alive(queue) ? remote<opcode::clFlush>(0, queue) : CL_INVALID_COMMAND_QUEUE;
}

cl_int clFinish(cl_command_queue queue) {
  return alive(queue) ? remote<opcode::clFinish>(0, queue) : CL_INVALID_COMMAND_QUEUE;
}

}  // namespace outboard::frontend::opencl::ends
