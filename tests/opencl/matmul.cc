// A tiled matrix product in local memory, in double steps: result against the host's, several sizes on one
// queue, times by profiling.
#include "program.hh"

static const char* const source = R"(
#define TILE 16
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void product(int n, __global const float* a, __global const float* b, __global float* c, __local float* rows) {
  __local float columns[TILE][TILE];
  int x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
  float sum = 0;
  for (int t = 0; t < n; t += TILE) {
    rows[ly * TILE + lx] = a[y * n + t + lx];
    columns[ly][lx] = b[(t + ly) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) sum += rows[ly * TILE + k] * columns[k][lx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}
)";

int main() {
  const machine m(CL_QUEUE_PROFILING_ENABLE);
  cl_program program = m.build(source, "-cl-std=CL1.2");
  cl_kernel product = m.kernel(program, "product");
  std::size_t fixed[3] = {};
  CHECK_CL(clGetKernelWorkGroupInfo(product, m.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof fixed, fixed,
                                    nullptr));
  REQUIRE(fixed[0] == 16 && fixed[1] == 16 && fixed[2] == 1);
  for (const cl_int n : {16, 64, 192}) {
    const std::size_t all = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    std::vector<float> a(all), b(all), c(all);
    for (std::size_t i = 0; i < all; ++i)
      a[i] = static_cast<float>(i % 7), b[i] = static_cast<float>(i % 5) - 2;
    cl_mem in_a = m.buffer(a, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR);
    cl_mem in_b = m.buffer(b, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR);
    cl_mem out = m.buffer(c, CL_MEM_READ_WRITE);
    set_arguments(product, n, in_a, in_b, out);
    CHECK_CL(clSetKernelArg(product, 4, 16 * 16 * sizeof(float), nullptr));
    const std::size_t global[] = {static_cast<std::size_t>(n), static_cast<std::size_t>(n)},
                      local[] = {16, 16};
    cl_event ran = nullptr;
    CHECK_CL(clEnqueueNDRangeKernel(m.queue, product, 2, nullptr, global, local, 0, nullptr, &ran));
    cl_event came = nullptr;
    CHECK_CL(clEnqueueReadBuffer(m.queue, out, CL_FALSE, 0, all * sizeof(float), c.data(), 1, &ran, &came));
    CHECK_CL(clWaitForEvents(1, &came));
    double sum = 0;
    for (cl_int y = 0; y < n; ++y) {
      for (cl_int x = 0; x < n; ++x) {
        float wanted = 0;
        for (cl_int k = 0; k < n; ++k)
          wanted += a[static_cast<std::size_t>(y * n + k)] * b[static_cast<std::size_t>(k * n + x)];
        REQUIRE(c[static_cast<std::size_t>(y * n + x)] == wanted);  // small whole numbers: exact in any order
        sum += wanted;
      }
    }
    cl_ulong begun = 0, ended = 0;
    CHECK_CL(clGetEventProfilingInfo(ran, CL_PROFILING_COMMAND_START, sizeof begun, &begun, nullptr));
    CHECK_CL(clGetEventProfilingInfo(ran, CL_PROFILING_COMMAND_END, sizeof ended, &ended, nullptr));
    REQUIRE(begun != 0 && ended >= begun);
    std::printf("%d: sum %.0f\n", n, sum);
    for (cl_event each : {ran, came}) CHECK_CL(clReleaseEvent(each));
    for (cl_mem each : {in_a, in_b, out}) CHECK_CL(clReleaseMemObject(each));
  }
  CHECK_CL(clReleaseKernel(product));
  CHECK_CL(clReleaseProgram(program));
}
