// Bitonic sorting networks over whole buffers and over sub-buffers, mapped to be filled and to be read.
#include <algorithm>

#include "program.hh"

static const char* const source = R"(
__kernel void exchange(__global uint* keys, uint distance, uint block) {
  uint i = get_global_id(0), other = i ^ distance;
  if (other <= i) return;
  uint a = keys[i], b = keys[other];
  bool up = (i & block) == 0;
  if ((a > b) == up) { keys[i] = b; keys[other] = a; }
}
)";

static void sort(const machine& m, cl_kernel step, cl_mem keys, cl_uint n) {
  const std::size_t global = n;
  for (cl_uint block = 2; block <= n; block *= 2) {
    for (cl_uint distance = block / 2; distance; distance /= 2) {
      set_arguments(step, keys, distance, block);
      CHECK_CL(clEnqueueNDRangeKernel(m.queue, step, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
    }
  }
}

int main() {
  const machine m;
  cl_program program = m.build(source);
  cl_kernel step = m.kernel(program, "exchange");
  const cl_uint n = 1 << 14, half = n / 2;
  std::vector<cl_uint> keys(n);
  cl_uint seed = 12345;
  for (cl_uint& key : keys) key = seed = seed * 1664525u + 1013904223u;
  cl_mem all = m.buffer(keys, CL_MEM_READ_WRITE);
  cl_int code = CL_SUCCESS;
  auto* mapped = static_cast<cl_uint*>(clEnqueueMapBuffer(m.queue, all, CL_TRUE, CL_MAP_WRITE, 0,
                                                          n * sizeof(cl_uint), 0, nullptr, nullptr, &code));
  CHECK_CL(code);
  std::copy(keys.begin(), keys.end(), mapped);
  CHECK_CL(clEnqueueUnmapMemObject(m.queue, all, mapped, 0, nullptr, nullptr));
  // The halves first, each a buffer of its own.
  cl_mem parts[2];
  for (cl_uint i = 0; i < 2; ++i) {
    const cl_buffer_region region{i * half * sizeof(cl_uint), half * sizeof(cl_uint)};
    parts[i] = clCreateSubBuffer(all, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    CHECK_CL(code);
    sort(m, step, parts[i], half);
    std::sort(keys.begin() + i * half, keys.begin() + (i + 1) * half);
  }
  auto look = [&](const char* what) {
    cl_event there = nullptr;
    auto* seen = static_cast<cl_uint*>(clEnqueueMapBuffer(m.queue, all, CL_FALSE, CL_MAP_READ, 0,
                                                          n * sizeof(cl_uint), 0, nullptr, &there, &code));
    CHECK_CL(code);
    CHECK_CL(clWaitForEvents(1, &there));
    CHECK_CL(clReleaseEvent(there));
    REQUIRE(std::equal(keys.begin(), keys.end(), seen));
    cl_ulong sum = 0;
    for (cl_uint i = 0; i < n; ++i) sum = sum * 31 + seen[i];
    std::printf("%s %llu\n", what, static_cast<unsigned long long>(sum));
    CHECK_CL(clEnqueueUnmapMemObject(m.queue, all, seen, 0, nullptr, nullptr));
  };
  look("halves");
  sort(m, step, all, n);
  std::sort(keys.begin(), keys.end());
  look("whole");
  CHECK_CL(clFinish(m.queue));
  for (cl_mem each : {parts[0], parts[1], all}) CHECK_CL(clReleaseMemObject(each));
  CHECK_CL(clReleaseKernel(step));
  CHECK_CL(clReleaseProgram(program));
}
