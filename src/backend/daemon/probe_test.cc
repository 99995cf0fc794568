#include "backend/daemon/probe.hh"

#include <gtest/gtest.h>

#include "api/cuda/headers.hh"

namespace outboard::backend {
namespace {

marshal::snapshot with(CUdevice_attribute which, marshal::attribute_answer answer) {
  marshal::snapshot two;
  two.devices.resize(2);
  two.devices[1].attributes.resize(static_cast<std::size_t>(which) + 1, {CUDA_ERROR_INVALID_VALUE, 0});
  two.devices[1].attributes[static_cast<std::size_t>(which)] = answer;
  return two;
}

TEST(probed_device, kernels_reach_all_memory_where_one_device_says_so) {
  constexpr auto pageable = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
  EXPECT_TRUE(reaches_all_memory(with(pageable, {CUDA_SUCCESS, 1})));
  EXPECT_FALSE(reaches_all_memory(with(pageable, {CUDA_SUCCESS, 0})));
  EXPECT_FALSE(reaches_all_memory(with(pageable, {CUDA_ERROR_INVALID_VALUE, 1}))) << "it does not know";
  EXPECT_FALSE(reaches_all_memory(with(CU_DEVICE_ATTRIBUTE_WARP_SIZE, {CUDA_SUCCESS, 32})))
      << "an old driver";
  EXPECT_FALSE(reaches_all_memory({}));
}

TEST(probed_device, has_an_exclusive_mode_where_one_device_says_so) {
  constexpr auto mode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
  EXPECT_TRUE(exclusive_compute_mode(with(mode, {CUDA_SUCCESS, CU_COMPUTEMODE_EXCLUSIVE_PROCESS})));
  EXPECT_FALSE(exclusive_compute_mode(with(mode, {CUDA_SUCCESS, CU_COMPUTEMODE_DEFAULT})));
}

}  // namespace
}  // namespace outboard::backend
