// A session with a limit of device memory: what counts, that the call beyond the limit is refused, and that
// released memory can be used again. usage: opencl_memory_limit BYTES [once|hold]
//   once: takes three quarters, prints the result, and ends; hold: keeps the memory until it is killed
#include <unistd.h>

#include "program.hh"

static const char* const source = R"(
__kernel void linger(__global int* v, int times) {
  int sum = v[0];
  for (int i = 0; i < times; ++i) sum = sum * 1664525 + 1013904223 + v[i & 7];
  v[0] = sum;
}
)";

static std::size_t limit = 0;

/// Returns the code; `made` is the buffer.
static cl_int take(cl_context context, std::size_t bytes, cl_mem& made,
                   cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
  cl_int code = 12345;
  made = clCreateBuffer(context, flags, bytes, host, &code);
  REQUIRE((made != nullptr) == (code == CL_SUCCESS));
  return code;
}

static bool refused(cl_context context, std::size_t bytes) {
  cl_mem made = nullptr;
  const cl_int code = take(context, bytes, made);
  if (made) CHECK_CL(clReleaseMemObject(made));
  REQUIRE(code == CL_SUCCESS || code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
  return code != CL_SUCCESS;
}

/// Allocates everything except `left` bytes.
static std::vector<cl_mem> fill(cl_context context, std::size_t left) {
  std::vector<cl_mem> all;
  for (std::size_t at = 0; at + limit / 8 <= limit - left; at += limit / 8)
    CHECK_CL(take(context, limit / 8, all.emplace_back()));
  return all;
}

static void give_back(std::vector<cl_mem>& all) {
  for (cl_mem each : all) CHECK_CL(clReleaseMemObject(each));
  all.clear();
}

template <class T>
static T about(cl_device_id device, cl_device_info name) {
  T value{};
  CHECK_CL(clGetDeviceInfo(device, name, sizeof value, &value, nullptr));
  return value;
}

static void buffers(const machine& m) {
  auto all = fill(m.context, 0);
  REQUIRE(all.size() == 8);
  REQUIRE(refused(m.context, 1) && refused(m.context, limit / 8));
  // A sub-buffer takes nothing; a buffer in the device takes its full size, wherever its contents come from.
  cl_int code = CL_SUCCESS;
  const cl_buffer_region region{4096, 4096};
  cl_mem part = clCreateSubBuffer(all[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  CHECK_CL(code);
  CHECK_CL(clReleaseMemObject(part));
  CHECK_CL(clReleaseMemObject(all.back()));
  all.pop_back();
  std::vector<char> host(limit / 8);
  CHECK_CL(
      take(m.context, host.size(), all.emplace_back(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, host.data()));
  REQUIRE(refused(m.context, 1));
  // The server counts the same: all of these buffers exist there.
  for (cl_mem each : all)
    CHECK_CL(clEnqueueWriteBuffer(m.queue, each, CL_TRUE, 0, 64, host.data(), 0, nullptr, nullptr));
  CHECK_CL(clFinish(m.queue));
  give_back(all);
  REQUIRE(!refused(m.context, limit / 2));
}

static void images(const machine& m) {
  if (!about<cl_bool>(m.device, CL_DEVICE_IMAGE_SUPPORT)) return;
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 1024, shape.image_height = limit / 8 / 4096;
  auto all = fill(m.context, limit / 8);
  cl_int code = CL_SUCCESS;
  cl_mem image = clCreateImage(m.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code);
  CHECK_CL(code);
  REQUIRE(refused(m.context, limit / 8));
  REQUIRE(!clCreateImage(m.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code));
  REQUIRE(code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
  CHECK_CL(clReleaseMemObject(image));
  REQUIRE(!refused(m.context, limit / 8));
  std::vector<char> host(limit / 8, 1);
  image =
      clCreateImage(m.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &shape, host.data(), &code);
  CHECK_CL(code);
  REQUIRE(refused(m.context, limit / 8));
  CHECK_CL(clReleaseMemObject(image));
  give_back(all);
}

static void shared(const machine& m) {
  const auto able = about<cl_device_svm_capabilities>(m.device, CL_DEVICE_SVM_CAPABILITIES);
  for (const cl_svm_mem_flags grain : {cl_svm_mem_flags{0}, cl_svm_mem_flags{CL_MEM_SVM_FINE_GRAIN_BUFFER}}) {
    if (grain && !(able & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)) continue;
    auto all = fill(m.context, limit / 8);
    void* const block = clSVMAlloc(m.context, CL_MEM_READ_WRITE | grain, limit / 8, 0);
    REQUIRE(block != nullptr);
    REQUIRE(!clSVMAlloc(m.context, CL_MEM_READ_WRITE | grain, 4096, 0));
    REQUIRE(refused(m.context, 1));
    cl_mem buffer = nullptr;  // in the block's own memory
    CHECK_CL(take(m.context, limit / 8, buffer, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, block));
    CHECK_CL(clReleaseMemObject(buffer));
    CHECK_CL(clFinish(m.queue));
    clSVMFree(m.context, block);
    REQUIRE(!refused(m.context, limit / 8));
    give_back(all);
  }
}

/// Released memory returns when the commands that use it are over; an allocation that needs it waits for
/// them.
static void in_use(const machine& m) {
  cl_program program = m.build(source);
  cl_kernel linger = m.kernel(program, "linger");
  const int times = 50000000;
  for (int round = 0; round < 3; ++round) {
    cl_mem used = nullptr;
    CHECK_CL(take(m.context, limit / 4 * 3, used));
    set_arguments(linger, used, times);
    const std::size_t one = 1;
    CHECK_CL(clEnqueueNDRangeKernel(m.queue, linger, 1, nullptr, &one, nullptr, 0, nullptr, nullptr));
    CHECK_CL(clReleaseMemObject(used));
  }
  CHECK_CL(clFinish(m.queue));
  CHECK_CL(clReleaseKernel(linger));
  CHECK_CL(clReleaseProgram(program));
  REQUIRE(!refused(m.context, limit));
}

/// Sub-devices share the limit of their device.
static void parts(const machine& m) {
  const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  if (clCreateSubDevices(m.device, by_one, 0, nullptr, &count) != CL_SUCCESS || count < 2) return;
  std::vector<cl_device_id> devices(count);
  CHECK_CL(clCreateSubDevices(m.device, by_one, count, devices.data(), nullptr));
  REQUIRE(about<cl_ulong>(devices[1], CL_DEVICE_GLOBAL_MEM_SIZE) == limit);
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 2, devices.data(), nullptr, nullptr, &code);
  CHECK_CL(code);
  auto all = fill(context, 0);
  REQUIRE(all.size() == 8 && refused(context, 1) && refused(m.context, 1));
  give_back(all);
  CHECK_CL(clReleaseContext(context));
  for (cl_device_id each : devices) CHECK_CL(clReleaseDevice(each));
}

int main(int argc, char** argv) {
  REQUIRE(argc > 1);
  limit = std::strtoull(argv[1], nullptr, 10);
  const machine m;
  if (argc > 2) {
    cl_mem most = nullptr, more = nullptr;
    const cl_int first = take(m.context, limit / 4 * 3, most), second = take(m.context, limit / 2, more);
    std::printf("%d %d\n", first, second);
    std::fflush(stdout);
    if (argv[2] == std::string("hold")) pause();
    return 0;
  }
  REQUIRE(about<cl_ulong>(m.device, CL_DEVICE_GLOBAL_MEM_SIZE) == limit);
  REQUIRE(about<cl_ulong>(m.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE) <= limit);
  REQUIRE(about<cl_ulong>(m.device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE) <= limit);
  cl_ulong unknown = 0;
  REQUIRE(clGetDeviceInfo(m.device, 0x4f420001, sizeof unknown, &unknown, nullptr) == CL_INVALID_VALUE);
  buffers(m);
  images(m);
  shared(m);
  in_use(m);
  parts(m);
  buffers(m);
  std::puts("PASS");
}
