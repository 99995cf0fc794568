// Platforms and devices: answered from the snapshot.
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/link.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

cl_int answer_from(const std::vector<marshal::opencl::info_value>& info, cl_uint name, const asked& to) {
  const auto* const found = marshal::opencl::find(info, name);
  return found ? to.bytes(found->value.data(), found->value.size()) : CL_INVALID_VALUE;
}

/// The default device is the first one, unless one says of itself that it is.
bool fits(cl_device_id device, cl_device_type wanted, bool first) {
  if (wanted == CL_DEVICE_TYPE_ALL) return true;
  const auto type = find<device_info>(device)->number<cl_device_type>(CL_DEVICE_TYPE);
  return (type & wanted & ~static_cast<cl_device_type>(CL_DEVICE_TYPE_DEFAULT)) != 0 ||
         ((wanted & CL_DEVICE_TYPE_DEFAULT) != 0 && first);
}

constexpr cl_device_type known_types = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                       CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;

template <class T>
cl_int give_list(const std::vector<T>& list, cl_uint entries, T* to, cl_uint* count) {
  if (to) std::copy_n(list.begin(), std::min<std::size_t>(entries, list.size()), to);
  if (count) *count = static_cast<cl_uint>(list.size());
  return CL_SUCCESS;
}

}  // namespace

cl_int icd_platforms(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms) {
  if ((platforms && num_entries == 0) || (!platforms && !num_platforms)) return CL_INVALID_VALUE;
  const auto& ours = link::instance().platforms();
  if (ours.empty()) {
    if (num_platforms) *num_platforms = 0;
    return CL_PLATFORM_NOT_FOUND_KHR;
  }
  return give_list(ours, num_entries, platforms, num_platforms);
}

cl_int clGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms) {
  return icd_platforms(num_entries, platforms, num_platforms);
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, std::size_t size, void* value,
                         std::size_t* wanted) {
  const auto* const info = find<platform_info>(platform);
  return info ? answer_from(info->info, name, {size, value, wanted}) : CL_INVALID_PLATFORM;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint num_entries,
                      cl_device_id* devices, cl_uint* num_devices) {
  const auto* const info = find<platform_info>(platform);
  if (!info) return CL_INVALID_PLATFORM;
  if ((devices && num_entries == 0) || (!devices && !num_devices)) return CL_INVALID_VALUE;
  if (type != CL_DEVICE_TYPE_ALL && ((type & ~known_types) != 0 || type == 0)) return CL_INVALID_DEVICE_TYPE;
  std::vector<cl_device_id> fitting;
  for (const cl_device_id device : info->devices) {
    if (fits(device, type, device == info->devices.front())) fitting.push_back(device);
  }
  if (fitting.empty()) {
    if (num_devices) *num_devices = 0;
    return CL_DEVICE_NOT_FOUND;
  }
  return give_list(fitting, num_entries, devices, num_devices);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, std::size_t size, void* value,
                       std::size_t* wanted) {
  const auto* const info = find<device_info>(device);
  if (!info) return CL_INVALID_DEVICE;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_DEVICE_PLATFORM:
      return to.one(info->platform);
    case CL_DEVICE_PARENT_DEVICE:
      return to.one(info->parent.get());
    case CL_DEVICE_REFERENCE_COUNT:
      return to.one(references(device));
    default:
      return answer_from(info->facts.info, name, to);
  }
}

cl_int clGetDeviceAndHostTimer(cl_device_id device, cl_ulong* device_timestamp, cl_ulong* host_timestamp) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  if (!device_timestamp || !host_timestamp) return CL_INVALID_VALUE;
  return remote<opcode::clGetDeviceAndHostTimer>(0, device, device_timestamp, host_timestamp);
}

cl_int clGetHostTimer(cl_device_id device, cl_ulong* host_timestamp) {
  if (!alive(device)) return CL_INVALID_DEVICE;
  if (!host_timestamp) return CL_INVALID_VALUE;
  return remote<opcode::clGetHostTimer>(0, device, host_timestamp);
}

// Hints: the back-end's compiler serves other sessions, too.
cl_int clUnloadPlatformCompiler(cl_platform_id platform) {
  return alive(platform) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}
cl_int clUnloadCompiler() { return CL_SUCCESS; }

/// Which back-end it will be asked of is not known here: all that one may have.
void* clGetExtensionFunctionAddress(const char* name) { return name ? extension_function(name) : nullptr; }

void* clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char* name) {
  const auto* const info = find<platform_info>(platform);
  if (!info || !name) return nullptr;
  const api::opencl::function_info* const own = api::opencl::find_function(std::string_view(name));
  if (own && !std::ranges::count(info->extension_functions, static_cast<std::uint32_t>(own->code)))
    return nullptr;
  return extension_function(name);
}

}  // namespace outboard::frontend::opencl::ends
