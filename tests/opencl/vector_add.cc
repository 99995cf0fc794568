// c = a + b with a copied buffer, a written one, and a blocking read; prints a sum of the result.
#include "program.hh"

static const char* const source =
    "__kernel void add(__global const float* a, __global const float* b, __global float* c, uint n) {\n"
    "  size_t i = get_global_id(0);\n"
    "  if (i < n) c[i] = a[i] + b[i];\n"
    "}\n";

int main() {
  const machine m;
  const cl_uint n = 1 << 20;
  std::vector<float> a(n), b(n), c(n);
  for (cl_uint i = 0; i < n; ++i)
    a[i] = static_cast<float>(i % 1000), b[i] = static_cast<float>(i % 77) * 0.5f;
  cl_mem in_a = m.buffer(a, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR);
  cl_mem in_b = m.buffer(b, CL_MEM_READ_ONLY);
  cl_mem out = m.buffer(c, CL_MEM_WRITE_ONLY);
  CHECK_CL(
      clEnqueueWriteBuffer(m.queue, in_b, CL_FALSE, 0, n * sizeof(float), b.data(), 0, nullptr, nullptr));
  cl_program program = m.build(source);
  cl_kernel add = m.kernel(program, "add");
  set_arguments(add, in_a, in_b, out, n);
  const std::size_t global = n;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, add, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(m.queue, out, CL_TRUE, 0, n * sizeof(float), c.data(), 0, nullptr, nullptr));
  double sum = 0;
  for (cl_uint i = 0; i < n; ++i) {
    REQUIRE(c[i] == a[i] + b[i]);
    sum += c[i];
  }
  std::printf("sum %.1f\n", sum);
  CHECK_CL(clReleaseKernel(add));
  CHECK_CL(clReleaseProgram(program));
  for (cl_mem each : {in_a, in_b, out}) CHECK_CL(clReleaseMemObject(each));
}
