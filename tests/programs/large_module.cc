// Loads modules of any size through the driver API: PTX text with a table of numbers that do not compress,
// one after the other or from several threads at once; each is run and its result checked. usage:
// large_module [KIB [MODULES [THREADS]]] (256 4 2)
#include <cuda.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "common.hh"

namespace {

constexpr unsigned stride = 257;  // words between those that the kernel adds

std::uint32_t number(std::uint32_t module, std::uint32_t place) {
  std::uint32_t x = (module * 0x9e3779b9u) ^ (place * 0x85ebca6bu);
  x = (x ^ x >> 16) * 0x7feb352du;
  return x ^ x >> 15;
}

struct text {
  std::string ptx;
  std::uint32_t words = 0, sum = 0;
};

text make(std::uint32_t module, std::size_t size) {
  text t;
  std::string table;
  table.reserve(size);
  while (table.size() < size) {
    const std::uint32_t value = number(module, t.words);
    if (t.words % stride == 0) t.sum += value;
    table += (t.words++ ? "," : "") + std::to_string(value);
  }
  const std::string count = std::to_string(t.words);
  t.ptx = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 table[" + count +
          "] = {" + table + R"(};
.visible .entry add(.param .u64 target) {
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [target];
  cvta.to.global.u64 %d2, %d1;
  mov.u64 %d3, table;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
next:
  ld.global.u32 %r3, [%d3];
  add.u32 %r1, %r1, %r3;
  add.u64 %d3, %d3, )" +
          std::to_string(4 * stride) + R"(;
  add.u32 %r2, %r2, )" +
          std::to_string(stride) + R"(;
  setp.lt.u32 %p1, %r2, )" +
          count + R"(;
  @%p1 bra next;
  st.global.u32 [%d2], %r1;
  ret;
})";
  return t;
}

void load_and_run(CUcontext context, const text& t) {
  MUST(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  MUST(cuModuleLoadData(&module, t.ptx.c_str()));
  CUfunction add = nullptr;
  MUST(cuModuleGetFunction(&add, module, "add"));
  CUdeviceptr target = 0;
  MUST(cuMemAlloc(&target, 4));
  void* parameters[] = {&target};
  MUST(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  std::uint32_t sum = 0;
  MUST(cuMemcpyDtoH(&sum, target, 4));
  EXPECT(sum == t.sum);
  MUST(cuMemFree(target));
  MUST(cuModuleUnload(module));
}

}  // namespace

int main(int argc, char** argv) {
  const auto size = static_cast<std::size_t>(argument(argc, argv, 1, 256)) << 10;
  const auto modules = static_cast<unsigned>(argument(argc, argv, 2, 4));
  const auto threads = static_cast<unsigned>(argument(argc, argv, 3, 2));
  std::vector<text> texts;
  for (unsigned m = 0; m < modules; ++m) texts.push_back(make(m, size));
  const auto began = std::chrono::steady_clock::now();
  MUST(cuInit(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (unsigned m = t; m < modules; m += threads) load_and_run(context, texts[m]);
    });
  }
  for (std::thread& w : workers) w.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::printf("start\t%.1f\tms\n", took.count());
  MUST(cuDevicePrimaryCtxRelease(0));
  return pass("large_module");
}
