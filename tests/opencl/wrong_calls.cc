// Prints wrong calls and their codes, one per line; Outboard must return the same codes as a local platform.
#include "codes.hh"

static const char* const source = R"(
typedef struct { int a; float b; } pair;
__kernel void every(__global int* g, __constant int* c, __local int* l, int scalar, float4 vector, pair both) {
  g[0] = c[0] + l[0] + scalar + (int)vector.x + both.a;
}
__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void fixed(__global int* g) { g[get_global_id(0)] = 1; }
)";

static void wrong_objects(const machine& m) {
  const cl_context_properties unknown[] = {0x7777, 1, 0};
  cl_device_id device = m.device;
  MAKES(clCreateContext(unknown, 1, &device, nullptr, nullptr, &code));
  MAKES(clCreateContext(nullptr, 0, &device, nullptr, nullptr, &code));
  MAKES(clCreateContext(nullptr, 1, &device, nullptr, &device, &code));
  MAKES(clCreateCommandQueue(m.context, m.device, 1u << 20, &code));
  MAKES(clCreateCommandQueue(m.context, nullptr, 0, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_READ_WRITE, 0, nullptr, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, nullptr, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_COPY_HOST_PTR, 64, nullptr, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_READ_WRITE, 64, &device, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 64, &device, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, 64, nullptr, &code));
  MAKES(clCreateBuffer(m.context, 1ull << 40, 64, nullptr, &code));
  MAKES(clCreateBuffer(m.context, CL_MEM_READ_WRITE, ~std::size_t{0}, nullptr, &code));
  cl_context_info info = 0x9999;
  cl_uint small = 0;
  CODE(clGetContextInfo(m.context, info, sizeof small, &small, nullptr));
  CODE(clGetContextInfo(m.context, CL_CONTEXT_DEVICES, 1, &small, nullptr));
  CODE(clGetDeviceInfo(m.device, 0x9999, sizeof small, &small, nullptr));
  CODE(clGetDeviceInfo(m.device, CL_DEVICE_NAME, 2, &small, nullptr));
  CODE(clGetDeviceIDs(m.platform, CL_DEVICE_TYPE_ALL, 0, &device, nullptr));
  CODE(clGetDeviceIDs(m.platform, CL_DEVICE_TYPE_ALL, 1, nullptr, nullptr));
  CODE(clGetDeviceIDs(m.platform, CL_DEVICE_TYPE_ACCELERATOR, 1, &device, nullptr));
  CODE(clGetPlatformInfo(m.platform, 0x9999, sizeof small, &small, nullptr));
}

static void wrong_copies(const machine& m) {
  std::vector<cl_int> host(256, 1);
  cl_mem a = m.buffer(host, CL_MEM_READ_WRITE), b = m.buffer(host, CL_MEM_READ_WRITE);
  cl_mem hidden = m.buffer(host, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
  cl_command_queue q = m.queue;
  int* const p = host.data();
  CODE(clEnqueueReadBuffer(q, a, CL_TRUE, 0, 1025, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, a, CL_TRUE, 1024, 1, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, a, CL_TRUE, ~std::size_t{0}, 2, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, a, CL_TRUE, 0, 16, nullptr, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, hidden, CL_TRUE, 0, 16, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, nullptr, CL_TRUE, 0, 16, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBuffer(q, a, CL_TRUE, 0, 16, p, 1, nullptr, nullptr));
  CODE(clEnqueueWriteBuffer(q, a, CL_TRUE, 1000, 100, p, 0, nullptr, nullptr));
  CODE(clEnqueueWriteBuffer(q, hidden, CL_TRUE, 0, 16, p, 0, nullptr, nullptr));
  CODE(clEnqueueCopyBuffer(q, a, a, 0, 16, 32, 0, nullptr, nullptr));
  CODE(clEnqueueCopyBuffer(q, a, b, 0, 1000, 32, 0, nullptr, nullptr));
  CODE(clEnqueueFillBuffer(q, a, p, 3, 0, 9, 0, nullptr, nullptr));
  CODE(clEnqueueFillBuffer(q, a, p, 4, 2, 8, 0, nullptr, nullptr));
  CODE(clEnqueueFillBuffer(q, a, p, 4, 0, 1028, 0, nullptr, nullptr));
  CODE(clEnqueueFillBuffer(q, a, nullptr, 4, 0, 8, 0, nullptr, nullptr));
  const std::size_t zero[3] = {}, region[3] = {16, 4, 1}, empty[3] = {16, 0, 1}, big[3] = {16, 100, 1};
  CODE(clEnqueueReadBufferRect(q, a, CL_TRUE, zero, zero, empty, 0, 0, 0, 0, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBufferRect(q, a, CL_TRUE, zero, zero, big, 0, 0, 0, 0, p, 0, nullptr, nullptr));
  CODE(clEnqueueReadBufferRect(q, a, CL_TRUE, zero, zero, region, 8, 0, 0, 0, p, 0, nullptr, nullptr));
  MAKES(clEnqueueMapBuffer(q, a, CL_TRUE, CL_MAP_READ, 1000, 100, 0, nullptr, nullptr, &code));
  MAKES(clEnqueueMapBuffer(q, hidden, CL_TRUE, CL_MAP_READ, 0, 16, 0, nullptr, nullptr, &code));
  CODE(clEnqueueUnmapMemObject(q, a, p, 0, nullptr, nullptr));
  cl_buffer_region part{0, 0}, beyond{512, 600}, crooked{3, 16};
  MAKES(clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond, &code));
  MAKES(clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &code));
  MAKES(clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &crooked, &code));
  MAKES(clCreateSubBuffer(a, 0, 0x1111, &part, &code));
  CHECK_CL(clFinish(q));
  for (cl_mem each : {a, b, hidden}) CHECK_CL(clReleaseMemObject(each));
}

static void wrong_kernels(const machine& m) {
  cl_program program = m.build(source), unbuilt = nullptr;
  MAKES(unbuilt = clCreateProgramWithSource(m.context, 1, const_cast<const char**>(&source), nullptr, &code));
  MAKES(clCreateProgramWithSource(m.context, 0, const_cast<const char**>(&source), nullptr, &code));
  MAKES(clCreateKernel(unbuilt, "every", &code));
  MAKES(clCreateKernel(program, "none", &code));
  MAKES(clCreateKernel(program, nullptr, &code));
  cl_device_id device = m.device;
  CODE(clBuildProgram(unbuilt, 1, nullptr, nullptr, nullptr, nullptr));
  CODE(clBuildProgram(unbuilt, 0, &device, nullptr, nullptr, nullptr));
  cl_kernel all = m.kernel(program, "every"), fixed = m.kernel(program, "fixed");
  std::vector<cl_int> host(64);
  cl_mem g = m.buffer(host, CL_MEM_READ_WRITE);
  const cl_int scalar = 1;
  const float vector[4] = {};
  const char pair[8] = {};
  const std::size_t n = 64, eight = 8, four = 4, huge = 1u << 20, seven = 7;
  CODE(clEnqueueNDRangeKernel(m.queue, all, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  CODE(clSetKernelArg(all, 6, sizeof scalar, &scalar));
  CODE(clSetKernelArg(all, 0, sizeof scalar, &scalar));
  CODE(clSetKernelArg(all, 0, sizeof g, &g));
  CODE(clSetKernelArg(all, 1, sizeof g, nullptr));
  CODE(clSetKernelArg(all, 2, 0, nullptr));
  CODE(clSetKernelArg(all, 2, 16, &scalar));
  CODE(clSetKernelArg(all, 2, 16, nullptr));
  CODE(clSetKernelArg(all, 3, 8, vector));
  CODE(clSetKernelArg(all, 3, sizeof scalar, nullptr));
  CODE(clSetKernelArg(all, 3, sizeof scalar, &scalar));
  CODE(clSetKernelArg(all, 4, sizeof vector, vector));
  CODE(clSetKernelArg(all, 5, 7, pair));
  CODE(clSetKernelArg(all, 5, 8, pair));
  CODE(clSetKernelArg(fixed, 0, sizeof g, &g));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 0, nullptr, &n, &eight, 0, nullptr, nullptr));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 4, nullptr, &n, &eight, 0, nullptr, nullptr));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 1, nullptr, &n, &four, 0, nullptr, nullptr));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 1, nullptr, &n, &huge, 0, nullptr, nullptr));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 1, nullptr, &seven, &eight, 0, nullptr, nullptr));
  CODE(clEnqueueNDRangeKernel(m.queue, fixed, 1, nullptr, &n, &eight, 0, nullptr, nullptr));
  CODE(clFinish(m.queue));
  std::size_t size = 0;
  CODE(clGetKernelInfo(all, 0x9999, sizeof size, &size, nullptr));
  CODE(clGetKernelWorkGroupInfo(all, m.device, 0x9999, sizeof size, &size, nullptr));
  CODE(clGetKernelArgInfo(all, 9, CL_KERNEL_ARG_NAME, 0, nullptr, &size));
  CODE(clGetProgramBuildInfo(program, m.device, 0x9999, sizeof size, &size, nullptr));
  CODE(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr));
  cl_event user = clCreateUserEvent(m.context, nullptr);
  CODE(clSetUserEventStatus(user, CL_RUNNING));
  CODE(clSetUserEventStatus(user, CL_COMPLETE));
  CODE(clSetUserEventStatus(user, CL_COMPLETE));
  CODE(clWaitForEvents(0, &user));
  CODE(clSetEventCallback(user, CL_COMPLETE, nullptr, nullptr));
  cl_ulong time = 0;
  CODE(clGetEventProfilingInfo(user, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr));
  CHECK_CL(clReleaseEvent(user));
  for (cl_kernel each : {all, fixed}) CHECK_CL(clReleaseKernel(each));
  for (cl_program each : {program, unbuilt}) CHECK_CL(clReleaseProgram(each));
  CHECK_CL(clReleaseMemObject(g));
  const char* broken = "__kernel void f( {";
  cl_program bad = clCreateProgramWithSource(m.context, 1, &broken, nullptr, nullptr);
  CODE(clBuildProgram(bad, 0, nullptr, nullptr, nullptr, nullptr));
  cl_build_status status = 0;
  CHECK_CL(clGetProgramBuildInfo(bad, m.device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr));
  say("status of a broken build", status);
  CHECK_CL(clReleaseProgram(bad));
}

static void wrong_devices(const machine& m) {
  // A queue on the device is left out, because PoCL ends the process.
  const cl_queue_properties unknown[] = {0x7777, 1, 0};
  MAKES(clCreateCommandQueueWithProperties(m.context, m.device, unknown, &code));
  CODE(clSetDefaultDeviceCommandQueue(nullptr, m.device, m.queue));
  CODE(clSetDefaultDeviceCommandQueue(m.context, nullptr, m.queue));
  CODE(clSetDefaultDeviceCommandQueue(m.context, m.device, nullptr));
  CODE(clSetDefaultDeviceCommandQueue(m.context, m.device, m.queue));
  MAKES(clCreatePipe(nullptr, CL_MEM_HOST_NO_ACCESS, 4, 16, nullptr, &code));
  MAKES(clCreatePipe(m.context, CL_MEM_HOST_NO_ACCESS, 4, 16, nullptr, &code));
  std::vector<int> values(4);
  cl_mem buffer = m.buffer(values, CL_MEM_READ_WRITE);
  cl_uint size = 0;
  CODE(clGetPipeInfo(nullptr, CL_PIPE_PACKET_SIZE, sizeof size, &size, nullptr));
  CODE(clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, sizeof size, &size, nullptr));
  CHECK_CL(clReleaseMemObject(buffer));
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  wrong_objects(m);
  wrong_copies(m);
  wrong_kernels(m);
  wrong_devices(m);
}
