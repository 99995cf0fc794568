// Parts of devices: objects with references, where the host's devices have none.
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/link.hh"
#include "frontend/opencl/message.hh"
#include "frontend/opencl/shown.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::division_reply;

bool is_part(cl_device_id device) { return find<device_info>(device)->parent.get() != nullptr; }

cl_device_id make_part(cl_device_id parent, marshal::opencl::device_facts facts) {
  auto info = std::make_unique<device_info>();
  info->platform = find<device_info>(parent)->platform;
  const auto& platform = *find<platform_info>(info->platform);
  info->parent = needed(parent);
  info->memory_limit = take_memory_limit(facts.info);
  // It is shown as its parent is; its name has got the host behind it there.
  info->facts = {facts.handle, shown_of_device(std::move(facts.info), platform.host,
                                               platform.extension_functions, platform.shares_memory)};
  return reinterpret_cast<cl_device_id>(make_named(handle_kind::cl_device, facts.handle, std::move(info)));
}

}  // namespace

cl_int clCreateSubDevices(cl_device_id device, const cl_device_partition_property* properties,
                          cl_uint num_devices, cl_device_id* devices, cl_uint* count) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  if (!properties || !*properties || (devices && num_devices == 0)) return CL_INVALID_VALUE;
  marshal::opencl::division_body body{id_of(device), {}, devices == nullptr, num_devices};
  // Counts end with a zero of their own, and so does the list.
  const bool counts = *properties == CL_DEVICE_PARTITION_BY_COUNTS;
  const cl_device_partition_property* end = properties + 1;
  while (*end) ++end;
  body.properties.assign(properties, counts ? end + 1 : end);
  message m(opcode::clCreateSubDevices);
  marshal::put_body(m.body(), body);
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  auto division = marshal::take_body<division_reply>(reply);
  if (!reply.finished() || division.devices.size() > num_devices) return m.malformed();
  for (auto& facts : division.devices) *devices++ = make_part(device, std::move(facts));
  if (count) *count = static_cast<cl_uint>(division.count);
  return CL_SUCCESS;
}

cl_int clRetainDevice(cl_device_id device) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  return is_part(device) ? retain(device) : CL_SUCCESS;
}

cl_int clReleaseDevice(cl_device_id device) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  return is_part(device) ? release(device) : CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl::ends
