// What a process does with OpenCL besides computing. usage: life fork_first | fork_later | leave | reload |
// both | wait. Says PASS, except for `leave`, which ends in the middle; `wait` computes, says ready, reads a
// line, and continues with a back-end that is gone by then.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <thread>

#include "program.hh"

static const char* const source = "__kernel void add(__global int* a, int n) { a[get_global_id(0)] += n; }";

struct adder : machine {
  cl_program program = build(source);
  cl_kernel add = kernel(program, "add");
  std::vector<cl_int> values = std::vector<cl_int>(4096, 1);
  cl_mem memory = buffer(values, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);

  ~adder() {
    clReleaseMemObject(memory);
    clReleaseKernel(add);
    clReleaseProgram(program);
  }
  cl_int run(cl_int n) {
    set_arguments(add, memory, n);
    const std::size_t size = values.size();
    return clEnqueueNDRangeKernel(queue, add, 1, nullptr, &size, nullptr, 0, nullptr, nullptr);
  }
  cl_int read() {
    return clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, values.size() * sizeof(cl_int), values.data(), 0,
                               nullptr, nullptr);
  }
  void check(cl_int wanted) {
    CHECK_CL(read());
    REQUIRE(values.front() == wanted && values.back() == wanted);
  }
};

static void compute() {
  adder a;
  CHECK_CL(a.run(41));
  a.check(42);
}

static void wait_for(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_first() {
  const pid_t child = fork();
  compute();
  if (child == 0) std::exit(0);
  wait_for(child);
}

/// The session belongs to the parent: the child gets errors at once and does not disturb the parent's work.
static void fork_later() {
  adder a;
  CHECK_CL(a.run(1));
  const pid_t child = fork();
  if (child == 0) {
    REQUIRE(a.read() == CL_DEVICE_NOT_AVAILABLE);
    cl_int code = CL_SUCCESS;
    REQUIRE(!clCreateContext(nullptr, 1, &a.device, nullptr, nullptr, &code) &&
            code == CL_DEVICE_NOT_AVAILABLE);
    REQUIRE(clFinish(a.queue) == CL_DEVICE_NOT_AVAILABLE);
    clReleaseMemObject(a.memory);
    std::exit(0);
  }
  CHECK_CL(a.run(2));
  wait_for(child);
  CHECK_CL(a.run(3));
  a.check(7);
}

/// Exits with work under way, a thread in the middle of a wait, and nothing released.
static void leave() {
  static adder* const a = new adder;
  for (int i = 0; i < 100; ++i) CHECK_CL(a->run(1));
  std::thread([] {
    for (;;) clFinish(a->queue);
  }).detach();
  std::puts("left");
  std::exit(0);
}

/// Loads the OpenCL loader itself, closes it, and loads it again.
static void reload() {
  for (int turn = 0; turn < 3; ++turn) {
    void* const loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(loader);
    const auto platforms = reinterpret_cast<decltype(&clGetPlatformIDs)>(dlsym(loader, "clGetPlatformIDs"));
    cl_uint count = 0;
    CHECK_CL(platforms(0, nullptr, &count));
    REQUIRE(count >= 1);
    compute();
    REQUIRE(dlclose(loader) == 0);
  }
}

/// Uses CUDA in the same process, by the driver's functions; each API keeps its memory.
static void both() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(driver);
  const auto call = [&](const char* name, auto... arguments) {
    const auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(driver, name));
    REQUIRE(function);
    const int code = function(arguments...);
    if (code) std::fprintf(stderr, "%s gives %d\n", name, code);
    REQUIRE(code == 0);
  };
  void* context = nullptr;
  unsigned long long there = 0;
  adder a;
  call("cuInit", 0u);
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuMemAlloc_v2", &there, std::size_t{1} << 20);
  for (cl_int i = 0; i < 20; ++i) {
    call("cuMemsetD32_v2", there, static_cast<unsigned>(i), std::size_t{1} << 18);
    CHECK_CL(a.run(i));
    std::vector<cl_int> back(1 << 18);
    call("cuMemcpyDtoH_v2", static_cast<void*>(back.data()), there, back.size() * sizeof(cl_int));
    REQUIRE(back.front() == i && back.back() == i);
  }
  call("cuMemFree_v2", there);
  a.check(1 + 190);
}

static void go_on_without() {
  auto* const a = new adder;
  CHECK_CL(a->run(1));
  a->check(2);
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  REQUIRE(a->read() == CL_DEVICE_NOT_AVAILABLE);
  cl_int code = CL_SUCCESS;
  REQUIRE(!clCreateBuffer(a->context, 0, 4096, nullptr, &code) && code == CL_DEVICE_NOT_AVAILABLE);
  REQUIRE(clFinish(a->queue) == CL_DEVICE_NOT_AVAILABLE);
  delete a;  // a release now must do no harm
}

int main(int, char** words) {
  const std::string what = words[1] ? words[1] : "";
  if (what == "fork_first") {
    fork_first();
  } else if (what == "fork_later") {
    fork_later();
  } else if (what == "leave") {
    leave();
  } else if (what == "reload") {
    reload();
  } else if (what == "both") {
    both();
  } else {
    REQUIRE(what == "wait");
    go_on_without();
  }
  std::puts("PASS");
}
