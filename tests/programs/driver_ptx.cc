// The driver API without a runtime: PTX text, a global variable, two sources linked by cuLink, kernel
// parameters as an array and as a packed buffer, a memset in between, and text that is not PTX, which is
// refused.
#include <cuda.h>

#include <cmath>
#include <string>

#include "common.hh"

namespace {

const std::string header = ".version 7.0\n.target sm_75\n.address_size 64\n";

const std::string with_global = header + R"(
.visible .global .align 4 .u32 answer = 42;
.visible .entry bump() {
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [answer];
  add.u32 %r2, %r1, 1;
  st.global.u32 [answer], %r2;
  ret;
})";

const std::string with_kernel = header + R"(
.extern .func (.param .f32 result) twice_plus_one (.param .f32 value);
.visible .entry apply(.param .u64 source, .param .u64 target, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %d<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %d1, [source];
  ld.param.u64 %d2, [target];
  ld.param.u32 %r1, [count];
  cvta.to.global.u64 %d3, %d1;
  cvta.to.global.u64 %d4, %d2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %d5, %r5, 4;
  add.u64 %d6, %d3, %d5;
  add.u64 %d7, %d4, %d5;
  ld.global.f32 %f1, [%d6];
  {
    .param .f32 argument;
    .param .f32 returned;
    st.param.f32 [argument], %f1;
    call.uni (returned), twice_plus_one, (argument);
    ld.param.f32 %f2, [returned];
  }
  st.global.f32 [%d7], %f2;
done:
  ret;
})";

const std::string with_function = header + R"(
.visible .func (.param .f32 result) twice_plus_one (.param .f32 value) {
  .reg .f32 %f<3>;
  ld.param.f32 %f1, [value];
  fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
  st.param.f32 [result], %f2;
  ret;
})";

void check_global() {
  CUmodule module;
  CUfunction bump;
  CUdeviceptr address;
  size_t size = 0;
  int value = 0;
  MUST(cuModuleLoadData(&module, with_global.c_str()));
  MUST(cuModuleGetGlobal(&address, &size, module, "answer"));
  EXPECT(size == 4);
  MUST(cuModuleGetFunction(&bump, module, "bump"));
  MUST(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(cuMemcpyDtoH(&value, address, sizeof value));
  EXPECT(value == 43);
  EXPECT(cuModuleGetFunction(&bump, module, "nobody") == CUDA_ERROR_NOT_FOUND);
  MUST(cuModuleUnload(module));
}

CUmodule linked_module() {
  CUlinkState link;
  CUmodule module;
  void* image;
  size_t size;
  char errors[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* option_values[] = {errors, reinterpret_cast<void*>(sizeof errors)};
  MUST(cuLinkCreate(2, options, option_values, &link));
  for (const std::string* text : {&with_kernel, &with_function})
    MUST(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(text->c_str()), text->size() + 1, "part", 0,
                       nullptr, nullptr));
  CUresult linked = cuLinkComplete(link, &image, &size);
  if (linked != CUDA_SUCCESS) std::printf("link log: %s\n", errors);
  MUST(linked);
  MUST(cuModuleLoadData(&module, image));
  MUST(cuLinkDestroy(link));
  return module;
}

void check_kernel(CUmodule module) {
  unsigned n = 1000;
  CUfunction apply;
  CUdeviceptr source, target;
  std::vector<float> in(n), out(n);
  numbers random;
  for (auto& x : in) x = random.next_float();
  MUST(cuModuleGetFunction(&apply, module, "apply"));
  MUST(cuMemAlloc(&source, n * 4));
  MUST(cuMemAlloc(&target, n * 4));
  MUST(cuMemcpyHtoD(source, in.data(), n * 4));
  void* parameters[] = {&source, &target, &n};
  MUST(cuLaunchKernel(apply, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  MUST(cuMemsetD32(source, 0, n));  // after the kernel has read it
  struct {
    CUdeviceptr source, target;
    unsigned n;
  } packed = {target, target, n};
  size_t size = sizeof packed.source + sizeof packed.target + sizeof packed.n;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  MUST(cuLaunchKernel(apply, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  MUST(cuCtxSynchronize());
  MUST(cuMemcpyDtoH(out.data(), target, n * 4));
  for (unsigned i = 0; i < n; i++) EXPECT(out[i] == std::fma(std::fma(in[i], 2.0f, 1.0f), 2.0f, 1.0f));
  MUST(cuMemcpyDtoH(out.data(), source, n * 4));
  for (float x : out) EXPECT(x == 0);
  MUST(cuMemFree(source));
  MUST(cuMemFree(target));
}

}  // namespace

int main() {
  CUdevice device;
  CUcontext context;
  EXPECT(cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED);
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  CUdeviceptr none;
  EXPECT(cuMemAlloc(&none, 16) == CUDA_ERROR_INVALID_CONTEXT);
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  check_global();
  CUmodule module = linked_module();
  check_kernel(module);
  MUST(cuModuleUnload(module));
  EXPECT(cuModuleLoadData(&module, "this is no PTX") != CUDA_SUCCESS);
  MUST(cuDevicePrimaryCtxRelease(device));
  return pass("driver_ptx");
}
