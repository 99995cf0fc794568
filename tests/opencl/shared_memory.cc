// Shared virtual memory, coarse-grained: a list whose links are addresses, written by the host and walked by
// a kernel; copies, fills, maps of parts, memory freed in a queue's order.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "node_list.hh"

static const char* const source = R"(
__kernel void twice(__global int* v) { size_t i = get_global_id(0); v[i] *= 2; }
__kernel void behind(__global ulong* where) { *(__global int*)(*where) = 77; }
)";

static std::atomic<int> freed{0};

static void CL_CALLBACK give_back(cl_command_queue, cl_uint count, void* pointers[], void* data) {
  for (cl_uint i = 0; i < count; ++i) clSVMFree(static_cast<cl_context>(data), pointers[i]);
  freed.fetch_add(static_cast<int>(count));
}

template <class T>
static T* shared(const machine& m, std::size_t count) {
  auto* const made = static_cast<T*>(clSVMAlloc(m.context, CL_MEM_READ_WRITE, count * sizeof(T), 0));
  REQUIRE(made != nullptr);
  return made;
}

static void map(const machine& m, cl_map_flags flags, void* at, std::size_t size) {
  CHECK_CL(clEnqueueSVMMap(m.queue, CL_TRUE, flags, at, size, 0, nullptr, nullptr));
}
static void unmap(const machine& m, void* at) {
  CHECK_CL(clEnqueueSVMUnmap(m.queue, at, 0, nullptr, nullptr));
}

static void list(const machine& m, cl_program program) {
  cl_map_flags how = CL_MAP_WRITE_INVALIDATE_REGION;
  walk_list(
      m, program, CL_MEM_READ_WRITE,
      [&](void* at, std::size_t size) { map(m, std::exchange(how, CL_MAP_READ), at, size); },
      [&](void* at) { unmap(m, at); });
}

static void copies(const machine& m, cl_program program) {
  const std::size_t n = 3u << 20;  // 12 MiB: more than one frame takes
  int *const a = shared<int>(m, n), *const b = shared<int>(m, n);
  std::vector<int> host(n), back(n);
  for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<int>(i * 3);
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_FALSE, a, host.data(), n * sizeof(int), 0, nullptr, nullptr));
  cl_kernel twice = m.kernel(program, "twice");
  CHECK_CL(clSetKernelArgSVMPointer(twice, 0, a));
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, twice, 1, nullptr, &n, nullptr, 0, nullptr, nullptr));
  cl_event copied = nullptr;
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_FALSE, b, a, n * sizeof(int), 0, nullptr, &copied));
  cl_command_type type = 0;
  CHECK_CL(clGetEventInfo(copied, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  REQUIRE(type == CL_COMMAND_SVM_MEMCPY);
  const int pattern[2] = {5, 6};
  CHECK_CL(
      clEnqueueSVMMemFill(m.queue, b + 2, pattern, sizeof pattern, 4 * sizeof(int), 1, &copied, nullptr));
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_TRUE, back.data(), b, n * sizeof(int), 0, nullptr, nullptr));
  for (std::size_t i = 0; i < n; ++i) REQUIRE(back[i] == (i >= 2 && i < 6 ? pattern[i % 2] : 2 * host[i]));
  // Writes a mapped part, and nothing else changes.
  map(m, CL_MAP_READ | CL_MAP_WRITE, b + 100, 10 * sizeof(int));
  for (int i = 0; i < 10; ++i) {
    REQUIRE(b[100 + i] == 2 * host[100 + i]);
    b[100 + i] = -i;
  }
  unmap(m, b + 100);
  const void* const all[] = {a, b};
  CHECK_CL(
      clEnqueueSVMMigrateMem(m.queue, 2, const_cast<const void**>(all), nullptr, 0, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_TRUE, back.data(), b + 98, 14 * sizeof(int), 0, nullptr, nullptr));
  for (int i = 0; i < 14; ++i) std::printf("%d ", back[i]);
  // Source and target are the program's own memory.
  CHECK_CL(clEnqueueSVMMemcpy(m.queue, CL_TRUE, back.data() + 20, back.data(), 14 * sizeof(int), 0, nullptr,
                              nullptr));
  REQUIRE(std::memcmp(back.data(), back.data() + 20, 14 * sizeof(int)) == 0);
  std::printf("\n");
  CHECK_CL(clReleaseEvent(copied));
  CHECK_CL(clReleaseKernel(twice));
  // In the queue's order: once by the queue, once by a function of the program.
  void* one[] = {a};
  void* other[] = {b};
  cl_event gone = nullptr;
  CHECK_CL(clEnqueueSVMFree(m.queue, 1, one, nullptr, nullptr, 0, nullptr, &gone));
  CHECK_CL(clGetEventInfo(gone, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr));
  REQUIRE(type == CL_COMMAND_SVM_FREE);
  CHECK_CL(clEnqueueSVMFree(m.queue, 1, other, give_back, m.context, 1, &gone, nullptr));
  CHECK_CL(clFinish(m.queue));
  for (int tries = 0; freed.load() != 1 && tries < 500; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(freed.load() == 1);
  CHECK_CL(clReleaseEvent(gone));
}

/// Memory that no argument names, and a buffer that stands for shared memory.
static void indirect(const machine& m, cl_program program) {
  int* const target = shared<int>(m, 8);
  std::uint64_t* const where = shared<std::uint64_t>(m, 1);
  map(m, CL_MAP_WRITE, where, sizeof *where);
  *where = reinterpret_cast<std::uint64_t>(target + 3);
  unmap(m, where);
  cl_kernel behind = m.kernel(program, "behind");
  CHECK_CL(clSetKernelArgSVMPointer(behind, 0, where));
  void* const used[] = {target};
  CHECK_CL(clSetKernelExecInfo(behind, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof used, used));
  const std::size_t one = 1, eight = 8;
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, behind, 1, nullptr, &one, nullptr, 0, nullptr, nullptr));
  cl_int code = CL_SUCCESS;
  cl_mem buffer =
      clCreateBuffer(m.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 8 * sizeof(int), target, &code);
  CHECK_CL(code);
  cl_bool uses = CL_FALSE;
  CHECK_CL(clGetMemObjectInfo(buffer, CL_MEM_USES_SVM_POINTER, sizeof uses, &uses, nullptr));
  REQUIRE(uses == CL_TRUE);
  cl_kernel twice = m.kernel(program, "twice");
  set_arguments(twice, buffer);
  CHECK_CL(clEnqueueNDRangeKernel(m.queue, twice, 1, nullptr, &eight, nullptr, 0, nullptr, nullptr));
  map(m, CL_MAP_READ, target + 3, sizeof(int));
  std::printf("behind: %d\n", target[3]);
  unmap(m, target + 3);
  CHECK_CL(clFinish(m.queue));
  CHECK_CL(clReleaseMemObject(buffer));
  clSVMFree(m.context, target);
  clSVMFree(m.context, where);
  for (cl_kernel each : {behind, twice}) CHECK_CL(clReleaseKernel(each));
}

int main() {
  const machine m;
  cl_device_svm_capabilities able = 0;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_SVM_CAPABILITIES, sizeof able, &able, nullptr));
  REQUIRE((able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0);
  cl_program program = m.build((node_list_source + std::string(source)).c_str(), "-cl-std=CL1.2");
  list(m, program);
  copies(m, program);
  indirect(m, program);
  CHECK_CL(clReleaseProgram(program));
}
