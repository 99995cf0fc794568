// For the tests of the cpu device: opens it, makes the primary context current, and holds PTX that several
// use.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "device/cpu/cpu.hh"

namespace outboard::device::cpu {

inline constexpr const char* test_ptx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .entry vectoradd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r4, %r3, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra done;
  mul.wide.s32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}
.visible .entry increment(.param .u64 at)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [at];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry add_one_atomic(.param .u64 at)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [at];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
.visible .entry store(.param .u64 at, .param .u32 value)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry spin_until(.param .u64 flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
.visible .entry trapping()
{
  trap;
  ret;
}
)";

class device_test : public ::testing::Test {
 protected:
  explicit device_test(options how = {}) {
    if (how.memory_bytes == 0) how.memory_bytes = 256u << 20;
    if (how.cores == 0) how.cores = 2;
    auto opened = open(how);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    device_ = std::move(*opened);
    table_ = device_->cuda();
  }

  void SetUp() override {
    ASSERT_EQ(table_.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }

  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr at = 0;
    EXPECT_EQ(table_.cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
    return at;
  }

  CUmodule load(const char* text = test_ptx) {
    CUmodule module = nullptr;
    char log[512] = {};
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    EXPECT_EQ(table_.cuModuleLoadDataEx(&module, text, 2, names, values), CUDA_SUCCESS) << log;
    return module;
  }

  CUfunction function(CUmodule module, const char* name) {
    CUfunction f = nullptr;
    EXPECT_EQ(table_.cuModuleGetFunction(&f, module, name), CUDA_SUCCESS);
    return f;
  }

  /// One thread of a kernel with any parameters.
  template <class... P>
  CUresult launch(CUfunction f, CUstream stream, P... parameters) {
    void* pointers[] = {&parameters..., nullptr};
    return table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, pointers, nullptr);
  }

  unsigned read(CUdeviceptr at) {
    unsigned value = 0;
    EXPECT_EQ(table_.cuMemcpyDtoH_v2(&value, at, sizeof value), CUDA_SUCCESS);
    return value;
  }

  std::unique_ptr<device> device_;
  api::driver_table table_;
  CUcontext context_ = nullptr;
};

}  // namespace outboard::device::cpu
