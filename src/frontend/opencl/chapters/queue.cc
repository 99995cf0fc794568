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
  const bool there = (bits & device_bits) != 0;
  const auto able = about->number<cl_command_queue_properties>(there ? CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES
                                                                     : CL_DEVICE_QUEUE_PROPERTIES);
  return (bits & host_bits & ~able) != 0 || (there && able == 0) ? CL_INVALID_QUEUE_PROPERTIES : CL_SUCCESS;
}

void set_default(cl_context context, cl_device_id device, cl_command_queue queue) {
  auto& in = *find<context_info>(context);
  const std::lock_guard lock(in.mutex);
  in.default_queues[device] = queue;
}

/// nullptr: the device has none in this context, or it is gone.
cl_command_queue default_of(cl_context context, cl_device_id device) {
  auto& in = *find<context_info>(context);
  const std::lock_guard lock(in.mutex);
  const auto found = in.default_queues.find(device);
  return found != in.default_queues.end() && alive(found->second) ? found->second : nullptr;
}

/// A hint that the device knows.
bool is_hint(cl_device_id device, cl_queue_properties name) {
  const auto* const about = find<device_info>(device);
  const auto* const text = about ? marshal::opencl::find(about->facts.info, CL_DEVICE_EXTENSIONS) : nullptr;
  if (!text) return false;
  const std::string_view extensions(reinterpret_cast<const char*>(text->value.data()), text->value.size());
  const auto has = [&](std::string_view one) { return extensions.find(one) != std::string_view::npos; };
  return (name == CL_QUEUE_PRIORITY_KHR && has("cl_khr_priority_hints")) ||
         (name == CL_QUEUE_THROTTLE_KHR && has("cl_khr_throttle_hints"));
}

cl_command_queue make_queue(cl_context context, cl_device_id device, cl_command_queue_properties bits,
                            cl_uint bytes, std::vector<cl_queue_properties> given, cl_int* errcode_ret) {
  marshal::opencl::queue_body body{0, id_of(context), id_of(device), {}};
  for (std::size_t i = 0; i + 1 < given.size(); i += 2) {  // what is neither of the two below is a hint
    if (given[i] != CL_QUEUE_PROPERTIES && given[i] != CL_QUEUE_SIZE)
      body.properties.insert(body.properties.end(), {given[i], given[i + 1]});
  }
  if (bits) body.properties.insert(body.properties.end(), {CL_QUEUE_PROPERTIES, bits});
  if (bytes) body.properties.insert(body.properties.end(), {CL_QUEUE_SIZE, bytes});
  auto info = std::make_unique<queue_info>();
  info->context = needed(context);
  info->device = device;
  info->bits = bits;
  info->size =
      bytes ? bytes : find<device_info>(device)->number<cl_uint>(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE);
  info->properties = std::move(given);
  const cl_command_queue made = create<cl_command_queue>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    body.handle = id;
    return post_body(opcode::clCreateCommandQueueWithProperties, body);
  });
  if (made && (bits & CL_QUEUE_ON_DEVICE_DEFAULT)) set_default(context, device, made);
  return made;
}

}  // namespace

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties bits, cl_int* errcode_ret) {
  if (const cl_int code = check(context, device, bits); code != CL_SUCCESS) return fail(errcode_ret, code);
  return make_queue(context, device, bits, 0, {}, errcode_ret);
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties* properties,
                                                    cl_int* errcode_ret) {
  cl_command_queue_properties bits = 0;
  std::vector<cl_queue_properties> given;
  cl_uint bytes = 0;
  cl_int code = CL_SUCCESS;
  for (const cl_queue_properties* p = properties; p && *p && code == CL_SUCCESS; p += 2) {
    given.insert(given.end(), {p[0], p[1]});
    if (p[0] == CL_QUEUE_PROPERTIES) {
      bits = p[1];
    } else if (p[0] == CL_QUEUE_SIZE) {
      bytes = static_cast<cl_uint>(p[1]);
    } else if (!is_hint(device, p[0])) {
      code = CL_INVALID_VALUE;
    }
  }
  // Only queues on the device have a size.
  if (bytes && (bits & CL_QUEUE_ON_DEVICE) == 0 && code == CL_SUCCESS) code = CL_INVALID_QUEUE_PROPERTIES;
  if (properties) given.push_back(0);
  if (const cl_int wrong = check(context, device, bits); wrong != CL_SUCCESS) code = wrong;
  if (code != CL_SUCCESS) return fail(errcode_ret, code);
  return make_queue(context, device, bits, bytes, std::move(given), errcode_ret);
}

cl_int clRetainCommandQueue(cl_command_queue queue) { return retain(queue); }
/// Events keep the queue, and the device must get its commands all the same.
cl_int clReleaseCommandQueue(cl_command_queue queue) {
  if (alive(queue) && references(queue) == 1) (void)remote<opcode::clFlush>(0, queue);
  return release(queue);
}

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
      return to.one(default_of(info->context.get(), info->device));
    case CL_QUEUE_SIZE:
      return info->bits & CL_QUEUE_ON_DEVICE ? to.one(info->size) : CL_INVALID_COMMAND_QUEUE;
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clSetDefaultDeviceCommandQueue(cl_context context, cl_device_id device, cl_command_queue queue) {
  const auto* const in = find<context_info>(context);
  if (!in) return CL_INVALID_CONTEXT;
  const auto able = [](cl_device_id each) {
    return find<device_info>(each)->number<cl_command_queue_properties>(
               CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES) != 0;
  };
  if (std::none_of(in->devices.begin(), in->devices.end(), able)) return CL_INVALID_OPERATION;
  if (std::find(in->devices.begin(), in->devices.end(), device) == in->devices.end())
    return CL_INVALID_DEVICE;
  const auto* const about = find<queue_info>(queue);
  if (!about || about->context.get() != context || about->device != device ||
      (about->bits & CL_QUEUE_ON_DEVICE) == 0)
    return CL_INVALID_COMMAND_QUEUE;
  const cl_int code = remote<opcode::clSetDefaultDeviceCommandQueue>(0, context, device, queue);
  if (code == CL_SUCCESS) set_default(context, device, queue);
  return code;
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
