// Divides devices equally and by counts, uses each part with a context, a queue and a kernel of its own, and
// queries the parts.
#include <cstring>

#include "codes.hh"

static const char* const source =
    "__kernel void add(__global int* v, int n) { size_t i = get_global_id(0); v[i] += n; }\n";

static cl_uint number(cl_device_id device, cl_device_info what) {
  cl_uint value = 0;
  CHECK_CL(clGetDeviceInfo(device, what, sizeof value, &value, nullptr));
  return value;
}

static cl_int run_on(cl_device_id device, cl_int value) {
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  CHECK_CL(code);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &code);
  CHECK_CL(code);
  const char* text = source;
  cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  CHECK_CL(code);
  CHECK_CL(clBuildProgram(program, 1, &device, nullptr, nullptr, nullptr));
  cl_kernel add = clCreateKernel(program, "add", &code);
  CHECK_CL(code);
  cl_int start = 40;
  cl_mem buffer =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof start, &start, &code);
  CHECK_CL(code);
  set_arguments(add, buffer, value);
  const std::size_t one = 1;
  CHECK_CL(clEnqueueNDRangeKernel(queue, add, 1, nullptr, &one, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof start, &start, 0, nullptr, nullptr));
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseKernel(add));
  CHECK_CL(clReleaseProgram(program));
  CHECK_CL(clReleaseCommandQueue(queue));
  CHECK_CL(clReleaseContext(context));
  return start;
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  const cl_uint units = number(m.device, CL_DEVICE_MAX_COMPUTE_UNITS);
  cl_device_partition_property ways[8] = {};
  std::size_t size = 0;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_PARTITION_PROPERTIES, sizeof ways, ways, &size));
  for (std::size_t i = 0; i < size / sizeof ways[0]; ++i)
    std::printf("way %#lx\n", static_cast<long>(ways[i]));
  const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  CHECK_CL(clCreateSubDevices(m.device, equally, 0, nullptr, &count));
  REQUIRE(count == units);
  std::vector<cl_device_id> parts(count);
  CHECK_CL(clCreateSubDevices(m.device, equally, count, parts.data(), nullptr));
  for (cl_device_id part : parts) {
    REQUIRE(number(part, CL_DEVICE_MAX_COMPUTE_UNITS) == 1);
    cl_device_id parent = nullptr;
    CHECK_CL(clGetDeviceInfo(part, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr));
    REQUIRE(parent == m.device);
    cl_platform_id platform = nullptr;
    CHECK_CL(clGetDeviceInfo(part, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr));
    REQUIRE(platform == m.platform);
    cl_device_partition_property type[4] = {};
    CHECK_CL(clGetDeviceInfo(part, CL_DEVICE_PARTITION_TYPE, sizeof type, type, &size));
    std::printf("type %#lx %ld, %zu bytes\n", static_cast<long>(type[0]), static_cast<long>(type[1]), size);
    CHECK_CL(clRetainDevice(part));
    std::printf("references %u\n", number(part, CL_DEVICE_REFERENCE_COUNT));
    CHECK_CL(clReleaseDevice(part));
  }
  std::printf("on a part: %d\n", run_on(parts.front(), 2));
  for (cl_device_id part : parts) CHECK_CL(clReleaseDevice(part));
  const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                                 CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id one = nullptr;
  CHECK_CL(clCreateSubDevices(m.device, counts, 1, &one, &count));
  std::printf("by counts: %u, of %u\n", count, number(one, CL_DEVICE_MAX_COMPUTE_UNITS));
  CHECK_CL(clReleaseDevice(one));

  // Invalid properties.
  const cl_device_partition_property nothing[] = {0}, unknown[] = {0x7777, 1, 0},
                                     none[] = {CL_DEVICE_PARTITION_EQUALLY, 0, 0},
                                     many[] = {CL_DEVICE_PARTITION_EQUALLY, 100000, 0},
                                     more[] = {CL_DEVICE_PARTITION_BY_COUNTS, 100000, 0, 0};
  CODE(clCreateSubDevices(nullptr, equally, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, nullptr, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, nothing, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, unknown, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, none, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, many, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, more, 0, nullptr, &count));
  CODE(clCreateSubDevices(m.device, equally, 0, &one, nullptr));
  if (units > 1) CODE(clCreateSubDevices(m.device, equally, 1, &one, nullptr));
  CODE(clRetainDevice(nullptr));
  CODE(clReleaseDevice(nullptr));
  CODE(clRetainDevice(m.device));
  CODE(clReleaseDevice(m.device));
}
