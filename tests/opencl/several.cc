// Two back-ends at once: each does its own work, alternately and from two threads, and each refuses the
// other's objects. `several lost` continues after a line on stdin, when one of them is dead.
#include <cstring>
#include <iostream>
#include <thread>

#include "program.hh"

static const char* const source = "__kernel void add(__global int* a, int n) { a[get_global_id(0)] += n; }";

static std::vector<cl_platform_id> ours() {
  cl_uint count = 0;
  CHECK_CL(clGetPlatformIDs(0, nullptr, &count));
  std::vector<cl_platform_id> all(count), found;
  CHECK_CL(clGetPlatformIDs(count, all.data(), nullptr));
  for (cl_platform_id each : all) {
    if (platform_text(each, CL_PLATFORM_NAME).find("(outboard") != std::string::npos) found.push_back(each);
  }
  return found;
}

/// A machine on a given platform; program.hh chooses by name, and these have the same name.
struct side : machine {
  cl_program program = nullptr;
  cl_kernel add = nullptr;
  std::vector<cl_int> values = std::vector<cl_int>(1000, 5);
  cl_mem memory = nullptr;

  explicit side(cl_platform_id on) : machine(0, on) {
    program = build(source);
    add = kernel(program, "add");
    memory = buffer(values, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  }
  ~side() {
    clReleaseMemObject(memory);
    clReleaseKernel(add);
    clReleaseProgram(program);
  }
  cl_int run(cl_int n, cl_event* event = nullptr) {
    set_arguments(add, memory, n);
    const std::size_t size = values.size();
    return clEnqueueNDRangeKernel(queue, add, 1, nullptr, &size, nullptr, 0, nullptr, event);
  }
  cl_int read() {
    return clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, values.size() * sizeof(cl_int), values.data(), 0,
                               nullptr, nullptr);
  }
};

static void refusals(side& a, side& b) {
  cl_int code = CL_SUCCESS;
  const cl_device_id both[] = {a.device, b.device};
  REQUIRE(!clCreateContext(nullptr, 2, both, nullptr, nullptr, &code) && code == CL_INVALID_DEVICE);
  REQUIRE(!clCreateCommandQueueWithProperties(a.context, b.device, nullptr, &code) &&
          code == CL_INVALID_DEVICE);
  REQUIRE(clBuildProgram(a.program, 1, &b.device, nullptr, nullptr, nullptr) != CL_SUCCESS);
  REQUIRE(clEnqueueCopyBuffer(a.queue, a.memory, b.memory, 0, 0, 4, 0, nullptr, nullptr) ==
          CL_INVALID_CONTEXT);
  cl_event event = nullptr;
  CHECK_CL(a.run(0, &event));
  REQUIRE(clEnqueueMarkerWithWaitList(b.queue, 1, &event, nullptr) == CL_INVALID_CONTEXT);
  cl_event of_b = nullptr;
  CHECK_CL(b.run(0, &of_b));
  const cl_event events[] = {event, of_b};
  REQUIRE(clWaitForEvents(2, events) == CL_INVALID_CONTEXT);
  CHECK_CL(clWaitForEvents(1, &event));
  CHECK_CL(clWaitForEvents(1, &of_b));
  CHECK_CL(clReleaseEvent(event));
  CHECK_CL(clReleaseEvent(of_b));
  const std::size_t one = 1;
  const cl_int zero = 0;
  code = clSetKernelArg(a.add, 0, sizeof b.memory, &b.memory);
  CHECK_CL(clSetKernelArg(a.add, 1, sizeof zero, &zero));
  if (code == CL_SUCCESS) {
    code = clEnqueueNDRangeKernel(a.queue, a.add, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
    if (code == CL_SUCCESS) code = clFinish(a.queue);
  }
  REQUIRE(code != CL_SUCCESS);
  REQUIRE(clEnqueueNDRangeKernel(b.queue, a.add, 1, nullptr, &one, nullptr, 0, nullptr, nullptr) ==
          CL_INVALID_CONTEXT);
}

static void work(side& each, cl_int n) {
  for (int i = 0; i < 200; ++i) CHECK_CL(each.run(n));
}

int main(int count, char** words) {
  const auto platforms = ours();
  REQUIRE(platforms.size() == 2 && platforms[0] != platforms[1]);
  auto a = new side(platforms[0]), b = new side(platforms[1]);
  refusals(*a, *b);
  for (int i = 0; i < 10; ++i) {
    CHECK_CL(a->run(1));
    CHECK_CL(b->run(10));
  }
  std::thread other(work, std::ref(*a), 2);
  work(*b, 3);
  other.join();
  CHECK_CL(a->read());
  CHECK_CL(b->read());
  REQUIRE(a->values.front() == 5 + 10 + 400 && a->values.back() == 5 + 10 + 400);
  REQUIRE(b->values.front() == 5 + 100 + 600 && b->values.back() == 5 + 100 + 600);
  if (count > 1 && !std::strcmp(words[1], "lost")) {
    std::puts("ready");
    std::fflush(stdout);
    std::string line;
    std::getline(std::cin, line);
    REQUIRE(a->read() == CL_DEVICE_NOT_AVAILABLE);
    CHECK_CL(b->run(1));
    CHECK_CL(b->read());
    REQUIRE(b->values.front() == 706);
  }
  delete a;
  delete b;
  std::puts("PASS");
}
