// Prints answers and arguments of type size_t, which a 32-bit client and the device's host have in different
// widths; none may be larger than such a client can hold.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <iterator>

#include "program.hh"

static const char* const source =
    "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void where(__global ulong* to, ulong8 added) {\n"
    "  size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);\n"
    "  to[at] = get_global_id(0) + 100 * get_global_id(1) + added.s7;\n"
    "}\n"
    "__kernel void sum(__global ulong* to, __local uint* mine, uint n) {\n"
    "  mine[get_local_id(0)] = n;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (get_local_id(0) == 0) to[0] = mine[0] + mine[get_local_size(0) - 1] + get_global_offset(0);\n"
    "}\n";

static void show(const char* name, const std::vector<std::size_t>& sizes) {
  std::printf("%s:", name);
  for (const std::size_t size : sizes) {
    const std::uint64_t seen = std::min<std::uint64_t>(size, UINT32_MAX);
    std::printf(" %" PRIu64, seen);
  }
  std::printf("\n");
}

/// `ask`: a clGetXInfo with all but its last three parameters bound.
template <class Ask>
std::vector<std::size_t> sizes_of(Ask&& ask) {
  std::size_t bytes = 0;
  if (ask(0, nullptr, &bytes) != CL_SUCCESS) return {};
  REQUIRE(bytes % sizeof(std::size_t) == 0);
  std::vector<std::size_t> sizes(bytes / sizeof(std::size_t));
  CHECK_CL(ask(bytes, sizes.data(), nullptr));
  return sizes;
}

static void show_device(const machine& m) {
  const struct {
    const char* name;
    cl_device_info info;
  } infos[] = {
      {"work group", CL_DEVICE_MAX_WORK_GROUP_SIZE},
      {"work items", CL_DEVICE_MAX_WORK_ITEM_SIZES},
      {"image 2D width", CL_DEVICE_IMAGE2D_MAX_WIDTH},
      {"image 2D height", CL_DEVICE_IMAGE2D_MAX_HEIGHT},
      {"image 3D width", CL_DEVICE_IMAGE3D_MAX_WIDTH},
      {"image 3D height", CL_DEVICE_IMAGE3D_MAX_HEIGHT},
      {"image 3D depth", CL_DEVICE_IMAGE3D_MAX_DEPTH},
      {"image of a buffer", CL_DEVICE_IMAGE_MAX_BUFFER_SIZE},
      {"image layers", CL_DEVICE_IMAGE_MAX_ARRAY_SIZE},
      {"parameters", CL_DEVICE_MAX_PARAMETER_SIZE},
      {"global variable", CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE},
      {"global variables", CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE},
      {"timer", CL_DEVICE_PROFILING_TIMER_RESOLUTION},
      {"printf", CL_DEVICE_PRINTF_BUFFER_SIZE},
      {"multiple", CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE},
  };
  for (const auto& each : infos) {
    show(each.name, sizes_of([&](std::size_t size, void* to, std::size_t* wanted) {
           return clGetDeviceInfo(m.device, each.info, size, to, wanted);
         }));
  }
  cl_uint bits = 0;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, nullptr));
  std::printf("address bits: %u\n", bits);
  cl_ulong memory = 0;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof memory, &memory, nullptr));
  std::printf("cache: %" PRIu64 "\n", static_cast<std::uint64_t>(memory));
}

static void show_kernel(const machine& m, cl_kernel kernel) {
  for (const cl_kernel_work_group_info info : {CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_WORK_GROUP_SIZE,
                                               CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE}) {
    show("of the kernel", sizes_of([&](std::size_t size, void* to, std::size_t* wanted) {
           return clGetKernelWorkGroupInfo(kernel, m.device, info, size, to, wanted);
         }));
  }
  const std::size_t local[] = {4, 2, 1};
  show("sub-groups", sizes_of([&](std::size_t size, void* to, std::size_t* wanted) {
         return clGetKernelSubGroupInfo(kernel, m.device, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, sizeof local,
                                        local, size, to, wanted);
       }));
}

int main() {
  const machine m;
  show_device(m);
  cl_program program = m.build(source);
  cl_kernel where = m.kernel(program, "where"), sum = m.kernel(program, "sum");
  show_kernel(m, where);
  std::vector<cl_ulong> seen(8 * 4);
  cl_mem to = m.buffer(seen, CL_MEM_READ_WRITE);
  const cl_ulong8 added = {{0, 0, 0, 0, 0, 0, 0, cl_ulong{1} << 40}};
  set_arguments(where, to, added);
  const std::size_t global[] = {8, 4}, local[] = {4, 2}, offset[] = {3, 5};
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, where, 2, nullptr, global, local, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(m.queue, to, CL_TRUE, 0, seen.size() * sizeof seen[0], seen.data(), 0, nullptr,
                               nullptr));
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 8; ++x) REQUIRE(seen[y * 8 + x] == x + 100 * y + (cl_ulong{1} << 40));
  }
  const cl_uint n = 21;
  CHECK_CL(clSetKernelArg(sum, 0, sizeof to, &to));
  CHECK_CL(clSetKernelArg(sum, 1, 16 * sizeof(cl_uint), nullptr));
  CHECK_CL(clSetKernelArg(sum, 2, sizeof n, &n));
  const std::size_t sixteen = 16;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, sum, 1, offset, &sixteen, &sixteen, 0, nullptr, nullptr));
  // A box of bytes: two rows of three numbers from the middle, by rectangles.
  const std::size_t origin[] = {8, 1, 0}, here[] = {0, 0, 0}, region[] = {24, 2, 1};
  std::vector<cl_ulong> part(6);
  CHECK_CL(clEnqueueReadBufferRect(m.queue, to, CL_TRUE, origin, here, region, 64, 0, 24, 0, part.data(), 0,
                                   nullptr, nullptr));
  for (const cl_ulong each : part) std::printf("%" PRIu64 "\n", static_cast<std::uint64_t>(each));
  cl_ulong first = 0;
  CHECK_CL(clEnqueueReadBuffer(m.queue, to, CL_TRUE, 0, sizeof first, &first, 0, nullptr, nullptr));
  REQUIRE(first == 2 * n + 3);
  cl_event filled = nullptr;
  const cl_uchar pattern[4] = {1, 2, 3, 4};
  CHECK_CL(clEnqueueFillBuffer(m.queue, to, pattern, sizeof pattern, 8, 16, 0, nullptr, &filled));
  CHECK_CL(clWaitForEvents(1, &filled));
  CHECK_CL(clEnqueueReadBuffer(m.queue, to, CL_TRUE, 16, sizeof first, &first, 0, nullptr, nullptr));
  REQUIRE(first == 0x0403020104030201u);
  std::size_t size = 0;
  CHECK_CL(clGetMemObjectInfo(to, CL_MEM_SIZE, sizeof size, &size, nullptr));
  std::printf("buffer: %zu\n", size);
  CHECK_CL(clReleaseEvent(filled));
  for (cl_kernel each : {where, sum}) CHECK_CL(clReleaseKernel(each));
  CHECK_CL(clReleaseMemObject(to));
  CHECK_CL(clReleaseProgram(program));
}
