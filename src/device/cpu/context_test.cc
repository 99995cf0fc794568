#include <thread>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

/// Compares with the codes that a real driver returns before cuInit and without a context.
class code_test : public device_test {
 protected:
  void SetUp() override {}
};

TEST_F(code_test, before_init_everything_but_the_version_is_not_initialised) {
  int value = 0;
  unsigned flags = 0;
  std::size_t size = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  void* block = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmoduleLoadingMode mode;
  const auto none = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(table_.cuDriverGetVersion(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, api::described_version);
  EXPECT_EQ(table_.cuDeviceGetCount(&value), none);
  EXPECT_EQ(table_.cuDeviceGet(&device, 0), none);
  EXPECT_EQ(table_.cuDeviceGet(&device, 99), none);
  EXPECT_EQ(table_.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), none);
  EXPECT_EQ(table_.cuCtxGetCurrent(&context), none);
  EXPECT_EQ(table_.cuCtxGetDevice(&device), none);
  EXPECT_EQ(table_.cuCtxSetCurrent(nullptr), none);
  EXPECT_EQ(table_.cuCtxGetApiVersion(nullptr, &flags), none);
  EXPECT_EQ(table_.cuCtxSynchronize(), none);
  EXPECT_EQ(table_.cuCtxPopCurrent_v2(&context), none);
  EXPECT_EQ(table_.cuDevicePrimaryCtxGetState(0, &flags, &value), none);
  EXPECT_EQ(table_.cuMemAlloc_v2(&at, 4), none);
  EXPECT_EQ(table_.cuMemFree_v2(0), none);
  EXPECT_EQ(table_.cuMemGetInfo_v2(&size, &size), none);
  EXPECT_EQ(table_.cuMemHostAlloc(&block, 4, 0), none);
  EXPECT_EQ(table_.cuModuleLoadData(&module, test_ptx), none);
  EXPECT_EQ(table_.cuLibraryLoadData(&library, test_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0), none);
  EXPECT_EQ(table_.cuModuleGetLoadingMode(&mode), none);
  EXPECT_EQ(table_.cuProfilerStart(), none);
  EXPECT_EQ(table_.cuStreamCreate(&stream, 0), none);
  EXPECT_EQ(table_.cuEventCreate(&event, 0), none);
  EXPECT_EQ(table_.cuStreamSynchronize(nullptr), none);
  EXPECT_EQ(table_.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0), none);
}

TEST_F(code_test, without_a_context_the_codes_match_the_drivers) {
  ASSERT_EQ(table_.cuInit(0), CUDA_SUCCESS);
  int value = 0;
  unsigned flags = 0;
  std::size_t size = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  void* block = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const auto none = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(table_.cuDeviceGet(&device, 99), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(table_.cuCtxGetCurrent(&context), CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(table_.cuCtxGetDevice(&device), none);
  EXPECT_EQ(table_.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxGetApiVersion(nullptr, &flags), none);
  EXPECT_EQ(table_.cuCtxSynchronize(), none);
  EXPECT_EQ(table_.cuCtxPopCurrent_v2(&context), none);
  EXPECT_EQ(table_.cuDevicePrimaryCtxGetState(0, &flags, &value), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(table_.cuMemAlloc_v2(&at, 4), none);
  EXPECT_EQ(table_.cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemGetInfo_v2(&size, &size), none);
  EXPECT_EQ(table_.cuMemHostAlloc(&block, 4, 0), none);
  EXPECT_EQ(table_.cuModuleLoadData(&module, test_ptx), none);
  EXPECT_EQ(table_.cuLibraryLoadData(&library, test_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(table_.cuProfilerStart(), none);
  EXPECT_EQ(table_.cuStreamCreate(&stream, 0), none);
  EXPECT_EQ(table_.cuEventCreate(&event, 0), none);
  EXPECT_EQ(table_.cuStreamSynchronize(nullptr), none);
  EXPECT_EQ(table_.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(code_test, only_one_device_at_a_time) {
  EXPECT_FALSE(open());
  device_.reset();
  auto again = open({.capability = 90, .memory_bytes = 64u << 20, .cores = 1});
  ASSERT_TRUE(again);
  EXPECT_THAT((*again)->describe(), ::testing::HasSubstr("9.0"));
}

TEST(options_test, values_out_of_range_are_named) {
  EXPECT_THAT(open({.capability = 10}).error().message, ::testing::HasSubstr("10"));
  EXPECT_THAT(open({.memory_bytes = 5}).error().message, ::testing::HasSubstr("5 bytes"));
}

class context_test : public device_test {};

TEST_F(context_test, every_attribute_is_answered) {
  int value = 0;
  for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id) {
    EXPECT_EQ(table_.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), 0), CUDA_SUCCESS)
        << id;
  }
  EXPECT_EQ(table_.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
  int major = 0, minor = 0;
  table_.cuDeviceComputeCapability(&major, &minor, 0);
  EXPECT_EQ(major * 10 + minor, 75);
  char bus[32] = {}, short_name[8] = {};
  CUdevice device = -1;
  EXPECT_EQ(table_.cuDeviceGetPCIBusId(bus, sizeof bus, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuDeviceGetByPCIBusId(&device, bus), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(table_.cuDeviceGetName(short_name, sizeof short_name, 0), CUDA_SUCCESS);
  EXPECT_STREQ(short_name, "Outboar");
}

TEST_F(context_test, each_thread_has_its_own_stack) {
  CUcontext created = nullptr, seen = nullptr;
  ASSERT_EQ(table_.cuCtxCreate_v2(&created, 0, 0), CUDA_SUCCESS);
  table_.cuCtxGetCurrent(&seen);
  EXPECT_EQ(seen, created);
  EXPECT_EQ(table_.cuCtxPopCurrent_v2(&seen), CUDA_SUCCESS);
  EXPECT_EQ(seen, created);
  table_.cuCtxGetCurrent(&seen);
  EXPECT_EQ(seen, context_);
  std::thread([&] {
    CUcontext other = context_;
    EXPECT_EQ(table_.cuCtxGetCurrent(&other), CUDA_SUCCESS);
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  EXPECT_EQ(table_.cuCtxDestroy_v2(created), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxPushCurrent_v2(created), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(context_test, primary_is_stable_and_counted) {
  CUcontext again = nullptr;
  unsigned flags = 0;
  int active = 0;
  ASSERT_EQ(table_.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, context_);
  EXPECT_EQ(table_.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  table_.cuDevicePrimaryCtxGetState(0, &flags, &active);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(table_.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  table_.cuDevicePrimaryCtxGetState(0, &flags, &active);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(table_.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext seen = nullptr;
  EXPECT_EQ(table_.cuCtxGetCurrent(&seen), CUDA_SUCCESS);
  EXPECT_EQ(seen, context_) << "still current, only not active";
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(context_test, limits_are_kept) {
  std::size_t value = 0;
  EXPECT_EQ(table_.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(value, 1024u);
  EXPECT_EQ(table_.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
  table_.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE);
  EXPECT_EQ(value, 4096u);
  EXPECT_EQ(table_.cuCtxGetLimit(&value, static_cast<CUlimit>(15)), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

}  // namespace
}  // namespace outboard::device::cpu
