// Threads that make and destroy objects of one kind at once, so that a handle that one of them has just given
// back is the next one's at once: modules, libraries, whole contexts with code and memory, links, streams,
// events, graphs. usage: recycled_handles [TIMES [THREADS]] (150 3)
#include <cuda.h>

#include <string>
#include <thread>

#include "common.hh"

namespace {

const std::string code = R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 word = 42;
.visible .entry first() { ret; }
.visible .entry second() { ret; }
)";

void use_module() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr word = 0;
  MUST(cuModuleLoadData(&module, code.c_str()));
  MUST(cuModuleGetFunction(&function, module, "first"));
  MUST(cuModuleGetFunction(&function, module, "second"));
  MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(cuModuleGetGlobal(&word, nullptr, module, "word"));
  MUST(cuModuleUnload(module));
}

void use_library() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  MUST(cuLibraryLoadData(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cuLibraryGetKernel(&kernel, library, "first"));
  MUST(cuKernelGetFunction(&function, kernel));
  MUST(cuLibraryUnload(library));
}

void use_link() {
  CUlinkState state = nullptr;
  MUST(cuLinkCreate(0, nullptr, nullptr, &state));
  MUST(cuLinkDestroy(state));
}

void use_small_objects() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuEventRecord(event, stream));
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphDestroy(graph));
  MUST(cuEventDestroy(event));
  MUST(cuStreamDestroy(stream));
}

void use_context() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
#if CUDA_VERSION >= 13000
  MUST(cuCtxCreate(&context, nullptr, 0, 0));
#else
  MUST(cuCtxCreate(&context, 0, 0));
#endif
  MUST(cuModuleLoadData(&module, code.c_str()));
  MUST(cuModuleGetFunction(&function, module, "first"));
  CUdeviceptr large = 0, small = 0;
  MUST(cuMemAlloc(&large, 3u << 20));
  MUST(cuMemAlloc(&small, 256));
  MUST(cuCtxDestroy(context));
}

}  // namespace

int main(int argc, char** argv) {
  const auto times = argument(argc, argv, 1, 150), threads = argument(argc, argv, 2, 3);
  MUST(cuInit(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  for (void (*use)() : {use_module, use_library, use_link, use_small_objects, use_context}) {
    const long rounds = use == use_context ? times / 10 : times;
    std::vector<std::thread> users;
    for (long t = 0; t < threads; ++t) {
      users.emplace_back([=] {
        MUST(cuCtxSetCurrent(context));
        for (long i = 0; i < rounds; ++i) use();
      });
    }
    for (std::thread& user : users) user.join();
  }
  MUST(cuDevicePrimaryCtxRelease(0));
  return pass("recycled_handles");
}
