// Tests features that few devices have: programs in an intermediate language, built-in kernels, pipes, queues
// on the device.
#include "codes.hh"

#include <CL/cl_ext.h>

#include <cstdlib>
#include <cstring>

static cl_int run(const machine& m, cl_program program, const char* name) {
  cl_kernel kernel = m.kernel(program, name);
  std::vector<cl_int> values(4, 5);
  cl_mem buffer = m.buffer(values, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  set_arguments(kernel, buffer);
  const std::size_t n = values.size();
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, kernel, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(m.queue, buffer, CL_TRUE, 0, n * sizeof(cl_int), values.data(), 0, nullptr,
                               nullptr));
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseKernel(kernel));
  return values[3];
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  cl_device_id device = m.device;
  cl_int code = CL_SUCCESS;
  char text[256] = "";
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_IL_VERSION, sizeof text, text, nullptr));
  std::printf("language %s\n", text);
  const char il[] = "\x03\x02\x23\x07__kernel void tenfold(__global int* v) { v[get_global_id(0)] *= 10; }\n";
  cl_program program = clCreateProgramWithIL(m.context, il, sizeof il - 1, &code);
  CHECK_CL(code);
  const cl_int value = 1;
  CODE(clSetProgramSpecializationConstant(program, 7, sizeof value, &value));
  CODE(clSetProgramSpecializationConstant(program, 8, sizeof value, &value));
  CODE(clSetProgramSpecializationConstant(program, 7, 1, &value));
  CHECK_CL(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr));
  std::printf("from the language: %d\n", run(m, program, "tenfold"));
  MAKES(clCreateProgramWithIL(m.context, "something", 9, &code));

  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_BUILT_IN_KERNELS, sizeof text, text, nullptr));
  cl_program stamps = clCreateProgramWithBuiltInKernels(m.context, 1, &device, text, &code);
  CHECK_CL(code);
  std::printf("%s: %d\n", text, run(m, stamps, "stamp"));
  MAKES(clCreateProgramWithBuiltInKernels(m.context, 1, &device, "no.such", &code));

  cl_mem pipe = clCreatePipe(m.context, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, 16, 8, nullptr, &code);
  CHECK_CL(code);
  cl_kernel stamp = m.kernel(stamps, "stamp");
  set_arguments(stamp, pipe);
  const std::size_t n = 4;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, stamp, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clFinish(m.queue));

  const cl_queue_properties wanted[] = {CL_QUEUE_PROPERTIES,
                                        CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                        CL_QUEUE_SIZE, 4096, 0};
  cl_command_queue there = clCreateCommandQueueWithProperties(m.context, m.device, wanted, &code);
  CHECK_CL(code);
  CODE(clSetDefaultDeviceCommandQueue(m.context, m.device, there));
  CODE(clSetDefaultDeviceCommandQueue(m.context, m.device, nullptr));
  CHECK_CL(clReleaseCommandQueue(there));

  // Functions of extensions that became core functions, and hints for queues. PoCL's own table lacks these
  // names, so the program asks for them only through Outboard.
  const cl_queue_properties hinted[] = {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, 0};
  cl_command_queue low = clCreateCommandQueueWithProperties(m.context, m.device, hinted, &code);
  CHECK_CL(code);
  CHECK_CL(clEnqueueMarkerWithWaitList(low, 0, nullptr, nullptr));
  CHECK_CL(clFinish(low));
  CHECK_CL(clReleaseCommandQueue(low));
  cl_platform_id platform = nullptr;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr));
  for (const char* name : {"clCreateCommandQueueWithPropertiesKHR", "clCreateProgramWithILKHR",
                           "clGetKernelSubGroupInfoKHR", "clNoSuchKHR"}) {
    void* const address = clGetExtensionFunctionAddressForPlatform(platform, name);
    if (std::getenv("OUTBOARD_SERVER"))
      REQUIRE((address != nullptr) == (std::strcmp(name, "clNoSuchKHR") != 0));
  }
  if (std::getenv("OUTBOARD_SERVER")) {
    auto* const make = reinterpret_cast<decltype(&clCreateCommandQueueWithProperties)>(
        clGetExtensionFunctionAddressForPlatform(platform, "clCreateCommandQueueWithPropertiesKHR"));
    low = make(m.context, m.device, hinted, &code);
    CHECK_CL(code);
    CHECK_CL(clReleaseCommandQueue(low));
  }
  std::printf("extensions\n");

  CHECK_CL(clReleaseKernel(stamp));
  CHECK_CL(clReleaseMemObject(pipe));
  for (cl_program each : {program, stamps}) CHECK_CL(clReleaseProgram(each));
}
