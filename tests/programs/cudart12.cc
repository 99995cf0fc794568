// A program of the CUDA 12 runtime (compiled against its headers, run with its shared library): allocations,
// copies and a kernel from PTX text by the runtime's library interface.
#include <cuda_runtime_api.h>

#include "common.hh"

static const char* text = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry square(.param .u64 data) {
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  cvta.to.global.u64 %d2, %d1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.u64 %d3, %d2, %d3;
  ld.global.u32 %r2, [%d3];
  mul.lo.u32 %r3, %r2, %r2;
  st.global.u32 [%d3], %r3;
  ret;
})";

int main() {
  int version = 0;
  MUST(cudaRuntimeGetVersion(&version));
  EXPECT(version / 1000 == 12);
  unsigned host[256], *data;
  for (unsigned i = 0; i < 256; i++) host[i] = i + 3;
  MUST(cudaMalloc(reinterpret_cast<void**>(&data), sizeof host));
  MUST(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
  cudaLibrary_t library;
  cudaKernel_t square;
  MUST(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cudaLibraryGetKernel(&square, library, "square"));
  void* parameters[] = {&data};
  MUST(cudaLaunchKernel(square, dim3(1), dim3(256), parameters, 0, nullptr));
  MUST(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < 256; i++) EXPECT(host[i] == (i + 3) * (i + 3));
  MUST(cudaLibraryUnload(library));
  MUST(cudaFree(data));
  return pass("cudart12");
}
