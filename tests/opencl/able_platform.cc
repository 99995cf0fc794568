// A platform for tests: PoCL with claims of features that no platform in Debian has, so that these calls are
// tested. Its intermediate language is OpenCL C behind a first word, its pipes are buffers, its queues on the
// device are queues, its built-in kernel is built from source. It changes PoCL's own dispatch table, so that
// each of PoCL's objects leads here. usage: an .icd file with this library's path; the macro POCL_LIBRARY is
// the library that PoCL's own .icd file names.
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace {

cl_icd_dispatch before;

constexpr char language[] = "SPIR-V_1.0 ", stamp_names[] = "stamp";
constexpr char stamp_source[] = "__kernel void stamp(__global int* v) { v[get_global_id(0)] = 31; }\n";

cl_int give(const void* answer, std::size_t size, std::size_t room, void* value, std::size_t* wanted) {
  if (value && room < size) return CL_INVALID_VALUE;
  if (value) std::memcpy(value, answer, size);
  if (wanted) *wanted = size;
  return CL_SUCCESS;
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, std::size_t room, void* value,
                               std::size_t* wanted) {
  const cl_bool yes = CL_TRUE;
  const cl_uint most = 1024;
  const cl_command_queue_properties queues = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  switch (name) {
    case CL_DEVICE_IL_VERSION:
      return give(language, sizeof language, room, value, wanted);
    case CL_DEVICE_PIPE_SUPPORT:
      return give(&yes, sizeof yes, room, value, wanted);
    case CL_DEVICE_PIPE_MAX_PACKET_SIZE:
      return give(&most, sizeof most, room, value, wanted);
    case CL_DEVICE_BUILT_IN_KERNELS:
      return give(stamp_names, sizeof stamp_names, room, value, wanted);
    case CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES:
      return give(&queues, sizeof queues, room, value, wanted);
    case CL_DEVICE_EXTENSIONS: {
      std::string all(8192, 0);
      std::size_t size = 0;
      if (before.clGetDeviceInfo(device, name, all.size(), all.data(), &size) != CL_SUCCESS)
        return CL_OUT_OF_RESOURCES;
      all.resize(size ? size - 1 : 0);
      all += " cl_khr_create_command_queue cl_khr_il_program cl_khr_priority_hints cl_khr_subgroups";
      return give(all.c_str(), all.size() + 1, room, value, wanted);
    }
    default:
      return before.clGetDeviceInfo(device, name, room, value, wanted);
  }
}

cl_program CL_API_CALL from_il(cl_context context, const void* il, std::size_t length, cl_int* code) {
  const char* text = static_cast<const char*>(il) + 4;
  const std::size_t size = length - 4;
  if (length <= 4 || std::memcmp(il, "\x03\x02\x23\x07", 4) != 0) {
    if (code) *code = CL_INVALID_VALUE;
    return nullptr;
  }
  return before.clCreateProgramWithSource(context, 1, &text, &size, code);
}

/// The only specialisation constant; setting it has no effect on the program.
cl_int CL_API_CALL constant(cl_program, cl_uint id, std::size_t size, const void*) {
  return id != 7 ? CL_INVALID_SPEC_ID : size != sizeof(cl_int) ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_program CL_API_CALL built_in(cl_context context, cl_uint count, const cl_device_id* devices,
                                const char* names, cl_int* code) {
  const char* text = stamp_source;
  if (std::string(names) != stamp_names) {
    if (code) *code = CL_INVALID_VALUE;
    return nullptr;
  }
  const cl_program made = before.clCreateProgramWithSource(context, 1, &text, nullptr, code);
  if (made) (void)before.clBuildProgram(made, count, devices, nullptr, nullptr, nullptr);
  return made;
}

cl_mem CL_API_CALL pipe(cl_context context, cl_mem_flags, cl_uint size, cl_uint packets,
                        const cl_pipe_properties*, cl_int* code) {
  return before.clCreateBuffer(context, CL_MEM_READ_WRITE, std::size_t{size} * packets, nullptr, code);
}

cl_command_queue CL_API_CALL queue(cl_context context, cl_device_id device,
                                   const cl_queue_properties* properties, cl_int* code) {
  for (const cl_queue_properties* p = properties; p && *p; p += 2) {
    const bool hinted = p[0] == CL_QUEUE_PRIORITY_KHR && p[1] == CL_QUEUE_PRIORITY_LOW_KHR;
    if (hinted || (p[0] == CL_QUEUE_PROPERTIES && (p[1] & CL_QUEUE_ON_DEVICE)))
      return before.clCreateCommandQueueWithProperties(context, device, nullptr, code);
  }
  return before.clCreateCommandQueueWithProperties(context, device, properties, code);
}

cl_int CL_API_CALL set_default(cl_context, cl_device_id, cl_command_queue queue) {
  return queue ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

void change(cl_icd_dispatch* table) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(table) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(table) + sizeof *table;
  if (::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0) return;
  before = *table;
  table->clGetDeviceInfo = device_info;
  table->clCreateProgramWithIL = from_il;
  table->clSetProgramSpecializationConstant = constant;
  table->clCreateProgramWithBuiltInKernels = built_in;
  table->clCreatePipe = pipe;
  table->clCreateCommandQueueWithProperties = queue;
  table->clSetDefaultDeviceCommandQueue = set_default;
}

/// Looks up a function of PoCL by name, because PoCL exports nothing but the functions for look-ups.
void* pocl(const char* name) {
  static void* const library = ::dlopen(POCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  const auto ask =
      library ? reinterpret_cast<void* (*)(const char*)>(::dlsym(library, "clGetExtensionFunctionAddress"))
              : nullptr;
  return ask ? ask(name) : nullptr;
}

}  // namespace

extern "C" cl_int clIcdGetPlatformIDsKHR(cl_uint entries, cl_platform_id* platforms, cl_uint* count) {
  const auto ask = reinterpret_cast<decltype(&clIcdGetPlatformIDsKHR)>(pocl("clIcdGetPlatformIDsKHR"));
  if (!ask) return CL_PLATFORM_NOT_FOUND_KHR;
  cl_platform_id first = nullptr;
  if (!before.clGetPlatformIDs && ask(1, &first, nullptr) == CL_SUCCESS)
    change(*reinterpret_cast<cl_icd_dispatch**>(first));  // the first word of each object
  return ask(entries, platforms, count);
}

extern "C" void* clGetExtensionFunctionAddress(const char* name) {
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
    return reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR);
  return pocl(name);
}

extern "C" cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, std::size_t size,
                                    void* value, std::size_t* wanted) {
  return before.clGetPlatformInfo(platform, name, size, value, wanted);
}
