// Shared by the OpenCL programs of these tests: the first device that fits OPENCL_TEST_PLATFORM (a part of a
// platform's name; any if it is unset), a queue, a built program, and an end that gives the reason.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
// Old programs still run.
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK_CL(call)                                                                \
  do {                                                                                \
    const cl_int code_ = (call);                                                      \
    if (code_ != CL_SUCCESS) {                                                        \
      std::fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, code_); \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)

#define REQUIRE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)

inline std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  std::size_t size = 0;
  CHECK_CL(clGetPlatformInfo(platform, what, 0, nullptr, &size));
  std::string text(size, '\0');
  CHECK_CL(clGetPlatformInfo(platform, what, size, text.data(), nullptr));
  text.resize(text.find('\0'));
  return text;
}

inline cl_platform_id chosen_platform() {
  cl_uint count = 0;
  CHECK_CL(clGetPlatformIDs(0, nullptr, &count));
  std::vector<cl_platform_id> platforms(count);
  CHECK_CL(clGetPlatformIDs(count, platforms.data(), nullptr));
  const char* part = std::getenv("OPENCL_TEST_PLATFORM");
  for (cl_platform_id platform : platforms) {
    if (!part || platform_text(platform, CL_PLATFORM_NAME).find(part) != std::string::npos) return platform;
  }
  std::fprintf(stderr, "none of %u platforms is \"%s\"\n", count, part ? part : "");
  std::exit(1);
}

struct machine {
  cl_platform_id platform;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;

  explicit machine(cl_command_queue_properties properties = 0, cl_platform_id on = chosen_platform())
      : platform(on) {
    CHECK_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    cl_int code = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    CHECK_CL(code);
    const cl_queue_properties wanted[] = {CL_QUEUE_PROPERTIES, properties, 0};
    queue = clCreateCommandQueueWithProperties(context, device, wanted, &code);
    CHECK_CL(code);
  }
  ~machine() {
    CHECK_CL(clReleaseCommandQueue(queue));
    CHECK_CL(clReleaseContext(context));
  }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  cl_program build(const char* source, const char* options = nullptr) const {
    cl_int code = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
    CHECK_CL(code);
    code = clBuildProgram(program, 0, nullptr, options, nullptr, nullptr);
    if (code != CL_SUCCESS) {
      std::string log(1 << 16, '\0');
      clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
      std::fprintf(stderr, "%s\n", log.c_str());
      CHECK_CL(code);
    }
    return program;
  }
  cl_kernel kernel(cl_program program, const char* name) const {
    cl_int code = CL_SUCCESS;
    cl_kernel made = clCreateKernel(program, name, &code);
    CHECK_CL(code);
    return made;
  }
  template <class T>
  cl_mem buffer(std::vector<T>& values, cl_mem_flags flags) const {
    cl_int code = CL_SUCCESS;
    const bool copied = (flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR)) != 0;
    cl_mem made =
        clCreateBuffer(context, flags, values.size() * sizeof(T), copied ? values.data() : nullptr, &code);
    CHECK_CL(code);
    return made;
  }
};

template <class... A>
void set_arguments(cl_kernel kernel, const A&... arguments) {
  cl_uint index = 0;
  auto one = [&](const auto& value) { CHECK_CL(clSetKernelArg(kernel, index++, sizeof value, &value)); };
  (one(arguments), ...);
}
