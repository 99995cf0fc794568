#include "api/cupti/names.hh"

#include <gtest/gtest.h>
#include "api/cuda/cupti_headers.hh"

namespace outboard::api::cupti {
namespace {

TEST(cupti_names, are_the_headers) {
  EXPECT_EQ(callback_of(domain::driver, "cuLaunchKernel"), CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  EXPECT_EQ(callback_of(domain::driver, "cuMemcpyDtoH_v2"), CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2);
  EXPECT_EQ(callback_of(domain::runtime, "cudaMalloc_v3020"), CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  EXPECT_EQ(callback_of(domain::driver, "cuNothing"), 0u);
  EXPECT_STREQ(callback_name(domain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
               "cudaLaunchKernel_v7000");
  EXPECT_EQ(callback_name(domain::driver, 0), nullptr);
  EXPECT_EQ(callback_name(domain::driver, 1u << 20), nullptr);
  EXPECT_EQ(callback_count(domain::driver), CUPTI_DRIVER_TRACE_CBID_SIZE);
  EXPECT_EQ(callback_count(domain::runtime), CUPTI_RUNTIME_TRACE_CBID_SIZE);
  EXPECT_EQ(callback_of(domain::nvtx, "nvtxRangePushA"), CUPTI_CBID_NVTX_nvtxRangePushA);
  EXPECT_EQ(callback_count(domain::nvtx), CUPTI_CBID_NVTX_SIZE);
  EXPECT_STREQ(result_name(CUPTI_SUCCESS), "CUPTI_SUCCESS");
  EXPECT_STREQ(result_name(CUPTI_ERROR_QUEUE_EMPTY), "CUPTI_ERROR_QUEUE_EMPTY");
  EXPECT_EQ(result_name(-1), nullptr);
  EXPECT_STREQ(kind_name(CUPTI_ACTIVITY_KIND_MEMCPY), "CUPTI_ACTIVITY_KIND_MEMCPY");
  EXPECT_STREQ(kind_name(CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS), "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS");
  EXPECT_STREQ(kind_name(CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION),
               "CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION");
  EXPECT_STREQ(kind_name(56), "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE");
  EXPECT_STREQ(kind_name(9999), "a kind without a name");
}

}  // namespace
}  // namespace outboard::api::cupti
