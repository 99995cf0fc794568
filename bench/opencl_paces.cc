// How long each kind of OpenCL command takes, one kind over and over, and CLBlast's matrix product. Takes a
// platform of Outboard's where there is one, else the first with a GPU, else any; so `bench/compare` can run
// it natively and through a back-end. Prints rows: name, value, unit, with tabs between; the median of single
// calls. usage: opencl_paces [quick [product]]; quick is few of each, and the matrix product, for which PoCL
// compiles half a minute, only if it is asked for.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "must.hh"
#include "pacing.hh"

namespace {

std::size_t rounds = 1500;
std::size_t launches = 5000;
std::size_t most = 256u << 20;
std::size_t matrix = 2048;
cl_device_id device;
cl_context context;
cl_command_queue queue;
cl_kernel nothing;

void row(const std::string& name, double value, const char* unit) {
  std::printf("%s\t%.4g\t%s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

void wait() { MUST(clFinish(queue)); }

void launch(cl_event* event = nullptr) {
  const std::size_t one = 1;
  MUST(clEnqueueNDRangeKernel(queue, nothing, 1, nullptr, &one, &one, 0, nullptr, event));
}

std::string text_of(cl_platform_id platform) {
  char name[256] = "";
  MUST(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr));
  return name;
}

/// The better platform is that with the greater number; 0: it has no device.
int worth(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return 0;
  const bool ours = text_of(platform).find("(outboard") != std::string::npos;
  const bool gpu = clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 0, nullptr, &count) == CL_SUCCESS && count;
  return 1 + 2 * ours + gpu;
}

void choose() {
  cl_uint count = 0;
  MUST(clGetPlatformIDs(0, nullptr, &count));
  std::vector<cl_platform_id> platforms(count);
  MUST(clGetPlatformIDs(count, platforms.data(), nullptr));
  const auto best = std::max_element(platforms.begin(), platforms.end(),
                                     [](auto a, auto b) { return worth(a) < worth(b); });
  // Whoever runs it through Outboard must not measure the machine's own platform.
  const bool through = std::getenv("OUTBOARD_SERVER") != nullptr;
  if (best == platforms.end() || worth(*best) < (through ? 3 : 1)) {
    std::fprintf(stderr, "no OpenCL device%s\n", through ? " of Outboard's" : "");
    std::exit(1);
  }
  if (clGetDeviceIDs(*best, CL_DEVICE_TYPE_GPU, 1, &device, nullptr) != CL_SUCCESS)
    MUST(clGetDeviceIDs(*best, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  char name[256] = "";
  MUST(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr));
  std::fprintf(stderr, "%s: %s\n", text_of(*best).c_str(), name);
}

void prepare() {
  cl_int code = 0;
  context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  MUST(code);
  queue = clCreateCommandQueue(context, device, 0, &code);
  MUST(code);
  const char* source = "__kernel void nothing(int a) {}";
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
  MUST(code);
  MUST(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr));
  nothing = clCreateKernel(program, "nothing", &code);
  MUST(code);
  const cl_int value = 0;
  MUST(clSetKernelArg(nothing, 0, sizeof value, &value));
}

void many_launches() {
  std::vector<double> submit, sustained;
  for (int turn = 0; turn < 5; ++turn) {
    const double began = microseconds();
    for (std::size_t i = 0; i < launches; ++i) {
      if (i == launches / 10) submit.push_back((microseconds() - began) / static_cast<double>(i));
      const auto value = static_cast<cl_int>(i);
      MUST(clSetKernelArg(nothing, 0, sizeof value, &value));
      launch();
    }
    wait();
    sustained.push_back((microseconds() - began) / static_cast<double>(launches));
  }
  row("launch_submit", median(submit), "us");
  row("launch_sustained", median(sustained), "us");
  row("launch_finish",
      pace_of(rounds,
              [] {
                launch();
                wait();
              }),
      "us");
  row("launch_event_wait",
      pace_of(rounds,
              [] {
                cl_event event = nullptr;
                launch(&event);
                MUST(clWaitForEvents(1, &event));
                MUST(clReleaseEvent(event));
              }),
      "us");
}

void transfers(std::size_t size, const std::string& name) {
  cl_int code = 0;
  cl_mem there = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &code);
  MUST(code);
  std::vector<char> here(size, 1);
  const std::size_t count = std::clamp<std::size_t>((most << 2) / size, 5, rounds);
  // Small ones are told by their time, large ones by their pace.
  const auto tell = [&](const std::string& what, double took) {
    if (size < 1u << 20) return row(what + "_" + name, took, "us");
    row(what + "_" + name, static_cast<double>(size) / took / 1000, "GB/s");
  };
  tell("write", pace_of(count, [&] {
         MUST(clEnqueueWriteBuffer(queue, there, CL_TRUE, 0, size, here.data(), 0, nullptr, nullptr));
       }));
  tell("write_finish", pace_of(count, [&] {
         MUST(clEnqueueWriteBuffer(queue, there, CL_FALSE, 0, size, here.data(), 0, nullptr, nullptr));
         wait();
       }));
  tell("read", pace_of(count, [&] {
         MUST(clEnqueueReadBuffer(queue, there, CL_TRUE, 0, size, here.data(), 0, nullptr, nullptr));
       }));
  const auto map = [&](cl_map_flags flags) {
    void* const seen = clEnqueueMapBuffer(queue, there, CL_TRUE, flags, 0, size, 0, nullptr, nullptr, &code);
    MUST(code);
    MUST(clEnqueueUnmapMemObject(queue, there, seen, 0, nullptr, nullptr));
    wait();
  };
  tell("map_read", pace_of(count, [&] { map(CL_MAP_READ); }));
  tell("map_write", pace_of(count, [&] { map(CL_MAP_WRITE_INVALIDATE_REGION); }));
  MUST(clReleaseMemObject(there));
}

/// CLBlastSgemm(layout, transposes, m, n, k, alpha, a, offset, ld, b, ..., beta, c, ..., queue, event)
using sgemm = int (*)(int, int, int, std::size_t, std::size_t, std::size_t, float, cl_mem, std::size_t,
                      std::size_t, cl_mem, std::size_t, std::size_t, float, cl_mem, std::size_t, std::size_t,
                      cl_command_queue*, cl_event*);

/// Left out without the library.
void product() {
  void* const library = ::dlopen("libclblast.so.1", RTLD_NOW);
  const auto multiply = library ? reinterpret_cast<sgemm>(::dlsym(library, "CLBlastSgemm")) : nullptr;
  if (!multiply) return;
  constexpr int row_major = 101, as_it_is = 111;
  const std::size_t n = matrix;
  const std::vector<float> ones(n * n, 1);
  cl_mem memory[3] = {};
  cl_int code = 0;
  for (cl_mem& each : memory) {
    each = clCreateBuffer(context, CL_MEM_READ_WRITE, n * n * sizeof(float), nullptr, &code);
    MUST(code);
    MUST(clEnqueueWriteBuffer(queue, each, CL_TRUE, 0, n * n * sizeof(float), ones.data(), 0, nullptr,
                              nullptr));
  }
  const double took = pace_of(10, [&] {
    MUST(multiply(row_major, as_it_is, as_it_is, n, n, n, 1, memory[0], 0, n, memory[1], 0, n, 0, memory[2],
                  0, n, &queue, nullptr));
    wait();
  });
  std::vector<float> result(n * n);
  MUST(clEnqueueReadBuffer(queue, memory[2], CL_TRUE, 0, n * n * sizeof(float), result.data(), 0, nullptr,
                           nullptr));
  const auto wanted = static_cast<float>(n);
  if (std::any_of(result.begin(), result.end(), [=](float value) { return value != wanted; })) {
    std::fprintf(stderr, "the product of ones is not %zu everywhere\n", n);
    std::exit(1);
  }
  const double operations = 2 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  row("clblast_sgemm_" + std::to_string(n), operations / took / 1000, "GFLOP/s");
  for (cl_mem each : memory) MUST(clReleaseMemObject(each));
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  const auto asked = [&](const char* word) {
    return std::find(given.begin(), given.end(), word) != given.end();
  };
  const bool quick = asked("quick");
  if (quick) rounds = 40, launches = 600, most = 16u << 20, matrix = 128;
  choose();
  prepare();
  for (int i = 0; i < 300; ++i) launch();
  wait();
  many_launches();
  transfers(4u << 10, "4K");
  transfers(64u << 10, "64K");
  transfers(1u << 20, "1M");
  transfers(16u << 20, "16M");
  if (most > 16u << 20) transfers(most, "256M");
  if (!quick || asked("product")) product();
}
