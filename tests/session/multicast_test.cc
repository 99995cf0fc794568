// Multicast objects between the front-end and a back-end process. Run this on the mock only: on a real
// machine a team that a dying worker leaves behind may cost other tenants their NVLink connections.
#include <gtest/gtest.h>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/process.hh"
#include "server.hh"

namespace outboard::tests {
namespace {

namespace ends = frontend::cuda::ends;
using frontend::process;

constexpr std::size_t granule = 2 << 20;

void begin(const server& s) {
  boot(s);
  CUcontext context = nullptr;
  ASSERT_EQ(ends::cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuCtxSetCurrent(context), CUDA_SUCCESS);
}

CUmemGenericAllocationHandle make_memory(std::size_t size) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_EQ(ends::cuMemCreate(&memory, size, &prop, 0), CUDA_SUCCESS);
  return memory;
}

void team_of_one(const server& s) {
  begin(s);
  CUmulticastObjectProp prop{};
  prop.numDevices = 1;
  prop.size = 4 * granule;
  std::size_t step = 0;
  ASSERT_EQ(ends::cuMulticastGetGranularity(&step, &prop, CU_MULTICAST_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(step, granule);
  CUmemGenericAllocationHandle team = 0;
  ASSERT_EQ(ends::cuMulticastCreate(&team, &prop), CUDA_SUCCESS);
  const CUmemGenericAllocationHandle memory = make_memory(2 * granule);
  EXPECT_EQ(ends::cuMulticastBindMem(team, 0, memory, 0, granule, 0), CUDA_ERROR_INVALID_VALUE)
      << "before every device was added";
  EXPECT_EQ(ends::cuMulticastAddDevice(team, 7), CUDA_ERROR_INVALID_DEVICE);
  ASSERT_EQ(ends::cuMulticastAddDevice(team, 0), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastAddDevice(team, 0), CUDA_ERROR_INVALID_VALUE) << "twice";
  ASSERT_EQ(ends::cuMulticastBindMem(team, 0, memory, granule, granule, 0), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastBindMem(team, 0, memory, 0, granule, 0), CUDA_ERROR_INVALID_VALUE)
      << "over a binding";
  EXPECT_EQ(ends::cuMulticastBindMem(team, granule, memory, granule, 2 * granule, 0),
            CUDA_ERROR_INVALID_VALUE)
      << "more than the memory has";
  CUdeviceptr address = 0;
  ASSERT_EQ(ends::cuMemAlloc_v2(&address, 2 * granule), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMulticastBindAddr(team, granule, address, granule, 0), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastBindAddr(team, 2 * granule, 0x1234000000, granule, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ends::cuMulticastUnbind(team, 0, granule, 2 * granule), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(ends::cuMulticastUnbind(team, 0, granule, granule), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastAddDevice(memory, 0), CUDA_ERROR_INVALID_VALUE) << "memory is no team";
  EXPECT_EQ(ends::cuMemRelease(team), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastAddDevice(team, 0), CUDA_ERROR_INVALID_VALUE) << "released";
}

void rebuilt(const server& s) {
  begin(s);
  CUmulticastObjectProp prop{};
  prop.numDevices = 1;
  prop.size = 2 * granule;
  CUmemGenericAllocationHandle team = 0;
  ASSERT_EQ(ends::cuMulticastCreate(&team, &prop), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMulticastAddDevice(team, 0), CUDA_SUCCESS);
  const CUmemGenericAllocationHandle memory = make_memory(granule);
  ASSERT_EQ(ends::cuMulticastBindMem(team, 0, memory, 0, granule, 0), CUDA_SUCCESS);
  std::vector<std::byte> records;
  ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
  ASSERT_TRUE(s.kill_worker());
  ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMulticastBindMem(team, 0, memory, 0, granule, 0), CUDA_ERROR_INVALID_VALUE)
      << "bound in the new worker too";
  EXPECT_EQ(ends::cuMulticastUnbind(team, 0, 0, granule), CUDA_SUCCESS);
}

TEST(multicast, teams_bind_and_unbind_memory) {
  const server s("mock");
  EXPECT_TRUE(in_fresh_process([&] { team_of_one(s); }));
}

TEST(multicast, is_rebuilt_with_its_bindings) {
  const server s("mock");
  EXPECT_TRUE(in_fresh_process([&] { rebuilt(s); }));
}

TEST(multicast, is_refused_on_the_cpu_device) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] {
    begin(s);
    CUmulticastObjectProp prop{};
    prop.numDevices = 1;
    prop.size = granule;
    CUmemGenericAllocationHandle team = 0;
    int supported = 9;
    EXPECT_EQ(ends::cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(supported, 0);
    EXPECT_EQ(ends::cuMulticastCreate(&team, &prop), CUDA_ERROR_NOT_SUPPORTED);
  }));
}

}  // namespace
}  // namespace outboard::tests
