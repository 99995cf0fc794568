// What OpenCL programs see through our library, printed by such a program: `outboard devices --opencl` runs
// this command as one.
#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "api/opencl/headers.hh"
#include "base/clean_line.hh"
#include "tool/exit_status.hh"
#include "tool/json_text.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

using nlohmann::json;

/// Objects of an ICD begin with its table.
const cl_icd_dispatch& table_of(const void* object) {
  return **static_cast<const cl_icd_dispatch* const*>(object);
}

/// `ask(size, into, &needed)` is one of the API's questions about an object.
template <class Ask>
std::string text_by(Ask ask) {
  std::size_t needed = 0;
  if (ask(0, nullptr, &needed) != CL_SUCCESS || needed == 0) return "";
  std::string text(needed, '\0');
  if (ask(needed, text.data(), nullptr) != CL_SUCCESS) return "";
  return clean_line(text.substr(0, text.find('\0')));
}

std::string of_platform(cl_platform_id platform, cl_platform_info what) {
  return text_by([=](std::size_t size, void* into, std::size_t* needed) {
    return table_of(platform).clGetPlatformInfo(platform, what, size, into, needed);
  });
}

std::string of_device(cl_device_id device, cl_device_info what) {
  return text_by([=](std::size_t size, void* into, std::size_t* needed) {
    return table_of(device).clGetDeviceInfo(device, what, size, into, needed);
  });
}

template <class Number>
Number number_of(cl_device_id device, cl_device_info what) {
  Number number{};
  (void)table_of(device).clGetDeviceInfo(device, what, sizeof number, &number, nullptr);
  return number;
}

const char* kind_of(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return "GPU";
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return "CPU";
  return (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? "accelerator" : "other";
}

void add_devices(cl_platform_id platform, json& list) {
  const auto get = table_of(platform).clGetDeviceIDs;
  cl_uint count = 0;
  if (get(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_device_id> devices(count);
  if (get(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) return;
  for (cl_device_id device : devices) {
    list.push_back({{"platform", of_platform(platform, CL_PLATFORM_NAME)},
                    {"name", of_device(device, CL_DEVICE_NAME)},
                    {"kind", kind_of(number_of<cl_device_type>(device, CL_DEVICE_TYPE))},
                    {"memory_bytes", number_of<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE)},
                    {"compute_units", number_of<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS)},
                    {"version", of_device(device, CL_DEVICE_VERSION)},
                    {"driver", of_device(device, CL_DRIVER_VERSION)}});
  }
}

std::string list_text(const json& list) {
  if (list.empty()) return "no OpenCL devices\n";
  std::vector<std::vector<std::string>> rows{
      {"PLATFORM", "NAME", "KIND", "MEMORY", "UNITS", "VERSION", "DRIVER"}};
  for (const json& d : list) {
    rows.push_back({d["platform"].get<std::string>(), d["name"].get<std::string>(),
                    d["kind"].get<std::string>(), size_text(d["memory_bytes"].get<double>()),
                    json_text(d["compute_units"]), d["version"].get<std::string>(),
                    d["driver"].get<std::string>()});
  }
  return table(rows);
}

}  // namespace

int verb_opencl_list(const std::string& library, bool as_json) {
  // Never closed: it ends with the process.
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) return complain(exit_failed, ::dlerror());
  const auto get_platforms = reinterpret_cast<cl_int (*)(cl_uint, cl_platform_id*, cl_uint*)>(
      ::dlsym(opened, "clIcdGetPlatformIDsKHR"));
  if (!get_platforms) return complain(exit_failed, library + " is no OpenCL library of ours");
  json list = json::array();
  cl_uint count = 0;
  if (get_platforms(0, nullptr, &count) == CL_SUCCESS && count > 0) {
    std::vector<cl_platform_id> platforms(count);
    if (get_platforms(count, platforms.data(), nullptr) != CL_SUCCESS) platforms.clear();
    for (cl_platform_id platform : platforms) add_devices(platform, list);
  }
  return print(as_json ? printed_json(list) : list_text(list));
}

}  // namespace outboard::tool
