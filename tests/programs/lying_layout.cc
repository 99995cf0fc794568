// Loads a kernel whose parameters a server describes wrongly, and launches it with arguments that have
// secrets behind them. `lying_layout WAY` says "ready" before the load, reads a line, then prints the codes
// of the load, of the launch, and of two more calls.
#include <cuda.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "common.hh"

namespace {

constexpr char code[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry takes_two(.param .u64 place, .param .u32 count) { ret; }\n";
// Our reader of PTX finds no parameters in it; a device for tests takes any text.
constexpr char unreadable[] = ".version 7.0\n.target sm_52\n.visible .entry takes_two(place, count)\n";

/// An argument as programs have them: other things of theirs lie behind it.
struct argument {
  std::uint64_t value = 0;
  char secret[8192] = {};
  argument() {
    for (std::size_t at = 0; at + 16 <= sizeof secret; at += 16)
      std::memcpy(secret + at, "the secret of us", 16);
  }
};

argument place, count;

CUresult launch(CUfunction function) {
  void* arguments[] = {&place.value, &count.value};
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
}

struct codes {
  CUresult load, launch;
};

codes by_module(const char* image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const CUresult loaded = cuModuleLoadData(&module, image);
  if (loaded == CUDA_SUCCESS) (void)cuModuleGetFunction(&function, module, "takes_two");
  return {loaded, launch(function)};
}

codes by_library() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const CUresult loaded = cuLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (loaded == CUDA_SUCCESS) (void)cuLibraryGetKernel(&kernel, library, "takes_two");
  return {loaded, launch(reinterpret_cast<CUfunction>(kernel))};
}

codes in_a_graph() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUresult loaded = cuModuleLoadData(&module, code);
  if (loaded == CUDA_SUCCESS) loaded = cuModuleGetFunction(&function, module, "takes_two");
  if (loaded == CUDA_SUCCESS) loaded = cuGraphCreate(&graph, 0);
  void* arguments[] = {&place.value, &count.value};
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = function;
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = arguments;
  return {loaded, cuGraphAddKernelNode(&node, graph, nullptr, 0, &p)};
}

/// The linked image is the server's too. Another call loads it by its address.
codes linked() {
  CUlinkState link = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  (void)cuLinkCreate(0, nullptr, nullptr, &link);
  (void)cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(code), sizeof code, "takes_two.ptx", 0,
                      nullptr, nullptr);
  CUresult loaded = cuLinkComplete(link, &image, &size);
  if (loaded == CUDA_SUCCESS) loaded = cuModuleLoadData(&module, image);
  if (loaded == CUDA_SUCCESS) (void)cuModuleGetFunction(&function, module, "takes_two");
  return {loaded, launch(function)};
}

const std::map<std::string, std::function<codes()>> ways = {
    {"module", [] { return by_module(code); }},
    {"unreadable", [] { return by_module(unreadable); }},
    {"library", by_library},
    {"graph", in_a_graph},
    {"link", linked},
};

}  // namespace

int main(int argc, char** argv) {
  const auto way = ways.find(argc == 2 ? argv[1] : "");
  if (way == ways.end()) return std::printf("FAIL: no such way\n"), 1;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return std::printf("FAIL: no context\n"), 1;
  std::printf("ready\n");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  CUdeviceptr address = 0;
  const codes got = way->second();
  std::printf("%d\n%d\n", (int)got.load, (int)got.launch);
  std::printf("%d\n", (int)cuMemAlloc(&address, 64));
  std::printf("%d\n", (int)cuCtxSynchronize());
  return 0;
}
