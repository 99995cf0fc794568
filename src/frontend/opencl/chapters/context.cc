#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using notify = void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*);

/// What the properties of a context say.
struct wishes {
  cl_int code = CL_SUCCESS;
  cl_platform_id platform = nullptr;  ///< null: the program does not say
  marshal::opencl::ids rest;          ///< names and values for the device's own platform
  std::vector<cl_context_properties> all;

  explicit wishes(const cl_context_properties* p) {
    for (; p && *p; p += 2) {
      all.insert(all.end(), {p[0], p[1]});
      if (std::count(all.begin(), all.end(), p[0]) > 1 && seen_before(p[0])) code = CL_INVALID_PROPERTY;
      if (p[0] == CL_CONTEXT_PLATFORM) {
        platform = reinterpret_cast<cl_platform_id>(p[1]);
        if (!alive(platform)) code = CL_INVALID_PLATFORM;
      } else if (p[0] == CL_CONTEXT_INTEROP_USER_SYNC && (p[1] == CL_TRUE || p[1] == CL_FALSE)) {
        rest.insert(rest.end(), {static_cast<std::uint64_t>(p[0]), static_cast<std::uint64_t>(p[1])});
      } else {
        code = CL_INVALID_PROPERTY;
      }
      if (code != CL_SUCCESS) return;
    }
    if (p) all.push_back(0);
  }

 private:
  bool seen_before(cl_context_properties name) const {
    for (std::size_t i = 0; i + 2 < all.size(); i += 2) {
      if (all[i] == name) return true;
    }
    return false;
  }
};

cl_context make_context(const wishes& wished, std::vector<cl_device_id> devices, cl_int* errcode_ret) {
  const auto* const first = find<device_info>(devices.front());
  const at_home here(cell_of(devices.front()));
  marshal::opencl::context_body body;
  body.platform = id_of(first->platform);
  body.properties = wished.rest;
  for (const cl_device_id device : devices) body.devices.push_back(id_of(device));
  auto info = std::make_unique<context_info>();
  for (const cl_device_id device : devices) info->kept.emplace_back(device);
  info->devices = std::move(devices);
  info->properties = wished.all;
  return create<cl_context>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    body.handle = id;
    return post_body(opcode::clCreateContext, body);
  });
}

}  // namespace

cl_context clCreateContext(const cl_context_properties* properties, cl_uint num_devices,
                           const cl_device_id* devices, notify pfn_notify, void* user_data,
                           cl_int* errcode_ret) {
  const wishes wished(properties);
  if (wished.code != CL_SUCCESS) return fail(errcode_ret, wished.code);
  if (num_devices == 0 || !devices || (!pfn_notify && user_data)) return fail(errcode_ret, CL_INVALID_VALUE);
  std::vector<cl_device_id> list;
  for (cl_uint i = 0; i < num_devices; ++i) {
    const auto* const device = find<device_info>(devices[i]);
    const auto* const first = find<device_info>(devices[0]);
    if (!device || device->platform != first->platform ||
        (wished.platform && device->platform != wished.platform))
      return fail(errcode_ret, CL_INVALID_DEVICE);
    if (std::find(list.begin(), list.end(), devices[i]) == list.end()) list.push_back(devices[i]);
  }
  return make_context(wished, std::move(list), errcode_ret);
}

cl_context clCreateContextFromType(const cl_context_properties* properties, cl_device_type type,
                                   notify pfn_notify, void* user_data, cl_int* errcode_ret) {
  const wishes wished(properties);
  if (wished.code != CL_SUCCESS) return fail(errcode_ret, wished.code);
  if (!pfn_notify && user_data) return fail(errcode_ret, CL_INVALID_VALUE);
  cl_platform_id platform = wished.platform;
  if (!platform) {
    const auto& all = link::instance().platforms();
    if (all.empty()) return fail(errcode_ret, CL_INVALID_PLATFORM);
    platform = all.front();
  }
  cl_uint count = 0;
  cl_int code = ends::clGetDeviceIDs(platform, type, 0, nullptr, &count);
  std::vector<cl_device_id> devices(count);
  if (code == CL_SUCCESS) code = ends::clGetDeviceIDs(platform, type, count, devices.data(), nullptr);
  if (code != CL_SUCCESS) return fail(errcode_ret, code);
  return make_context(wished, std::move(devices), errcode_ret);
}

cl_int clRetainContext(cl_context context) { return retain(context); }
cl_int clReleaseContext(cl_context context) { return release(context); }

cl_int clGetContextInfo(cl_context context, cl_context_info name, std::size_t size, void* value,
                        std::size_t* wanted) {
  const auto* const info = find<context_info>(context);
  if (!info) return CL_INVALID_CONTEXT;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_CONTEXT_REFERENCE_COUNT:
      return to.one(references(context));
    case CL_CONTEXT_NUM_DEVICES:
      return to.one(static_cast<cl_uint>(info->devices.size()));
    case CL_CONTEXT_DEVICES:
      return to.list(info->devices);
    case CL_CONTEXT_PROPERTIES:
      return to.list(info->properties);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clSetContextDestructorCallback(cl_context context, void(CL_CALLBACK* pfn_notify)(cl_context, void*),
                                      void* user_data) {
  auto* const info = find<context_info>(context);
  if (!info) return CL_INVALID_CONTEXT;
  if (!pfn_notify) return CL_INVALID_VALUE;
  info->at_end.add([=] { pfn_notify(context, user_data); });
  return CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl::ends
