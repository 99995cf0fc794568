// A program that annotates its work by NVTX in all the ways that its header has, in numbers that a test
// knows, and does some of it; whoever looks on must find what is said here. It prints PASS. Natively the
// same; without a tool (NVTX_INJECTION64_PATH) NVTX does nothing.
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "common.hh"

constexpr int steps = 3;

__global__ void add(int* p) { p[threadIdx.x] += 1; }

nvtxEventAttributes_t event(const char* text) {
  nvtxEventAttributes_t e{};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = text;
  return e;
}

/// What a push or pop gives with a tool; without one nobody counts.
bool is_level(int got, int level) { return std::getenv("NVTX_INJECTION64_PATH") ? got == level : got < 0; }

void name_things(cudaStream_t stream) {
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "the main one");
  nvtxNameCudaStreamW(stream, L"side \u2192");
  nvtxNameCudaDeviceA(0, "workhorse");
}

void ranges_of_a_domain(int* at, cudaStream_t stream) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
  nvtxDomainNameCategoryA(domain, 7, "assembly");
  const nvtxStringHandle_t name = nvtxDomainRegisterStringW(domain, L"assemble");
  nvtxEventAttributes_t e = event(nullptr);
  e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  e.message.registered = name;
  e.category = 7;
  e.colorType = NVTX_COLOR_ARGB;
  e.color = 0xff20a0e0;
  e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  e.payload.dValue = 0.25;
  EXPECT(is_level(nvtxDomainRangePushEx(domain, &e), 0));
  add<<<1, 32, 0, stream>>>(at);
  // A range of no domain that begins in it and goes on behind its end.
  EXPECT(is_level(nvtxRangePushA("goes on"), 0));
  EXPECT(is_level(nvtxDomainRangePop(domain), 0));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(is_level(nvtxRangePop(), 0));
  EXPECT(nvtxDomainRangePop(domain) < 0);
  e = event("residual");
  e.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  e.payload.iValue = -5;
  nvtxDomainMarkEx(domain, &e);
  nvtxDomainDestroy(domain);
}

void ranges_of_threads(int* at) {
  nvtxRangeId_t across = 0;
  std::thread first([&] { across = nvtxRangeStartW(L"across threads"); });
  first.join();
  std::thread second([&] {
    nvtxRangePushA("worker");
    add<<<1, 32>>>(at);
    MUST(cudaDeviceSynchronize());
    nvtxRangePop();
    nvtxRangeEnd(across);
    nvtxRangePushA("never ended by its thread");
  });
  second.join();
}

void resources(cudaStream_t stream) {
  nvtxResourceAttributes_t about{};
  about.version = NVTX_VERSION;
  about.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  about.identifierType = NVTX_RESOURCE_TYPE_CUDART_STREAM;
  about.identifier.pValue = stream;
  about.messageType = NVTX_MESSAGE_TYPE_ASCII;
  about.message.ascii = "as a resource";
  const nvtxResourceHandle_t handle = nvtxDomainResourceCreate(nullptr, &about);
  EXPECT(handle || !std::getenv("NVTX_INJECTION64_PATH"));
  nvtxDomainResourceDestroy(handle);
}

int main() {
  nvtxRangePushA("before CUDA");
  nvtxMarkA("first \"mark\"");
  // A child that never uses CUDA has ranges of its own, which are nobody's business, and its parent's to end.
  if (const pid_t child = fork(); child == 0) {
    EXPECT(is_level(nvtxRangePushA("of the child"), 1));
    EXPECT(is_level(nvtxRangePop(), 1) && is_level(nvtxRangePop(), 0));
    _exit(0);
  } else {
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
  EXPECT(is_level(nvtxRangePop(), 0));
  int* at = nullptr;
  cudaStream_t side, other;
  MUST(cudaMalloc(&at, 4096));
  MUST(cudaStreamCreate(&side));
  MUST(cudaStreamCreate(&other));
  MUST(cudaMemset(at, 0, 4096));
  name_things(side);
  resources(other);
  EXPECT(nvtxRangePop() < 0);
  EXPECT(is_level(nvtxRangePushW(L"\u00e4u\u00dferer \u2014 \U0001f600"), 0));
  for (int step = 0; step < steps; ++step) {
    nvtxEventAttributes_t e = event("step");
    e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    e.payload.ullValue = static_cast<uint64_t>(step);
    EXPECT(is_level(nvtxRangePushEx(&e), 1));
    add<<<1, 32, 0, step % 2 ? other : side>>>(at);
    MUST(cudaDeviceSynchronize());
    EXPECT(is_level(nvtxRangePop(), 1));
  }
  EXPECT(is_level(nvtxRangePop(), 0));
  ranges_of_a_domain(at, side);
  ranges_of_threads(at);
  nvtxRangeStartA("open to the end");
  nvtxRangeEnd(123456789);  // nobody's
  int first = 0;
  MUST(cudaMemcpy(&first, at, sizeof first, cudaMemcpyDeviceToHost));
  EXPECT(first == steps + 2);
  return pass("annotated");
}
