#include "device/mock/mock.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

namespace outboard::device::mock {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class mock_test : public ::testing::Test {
 protected:
  mock_test() : device_(std::move(open()).value()), cuda_(device_->cuda()) { cuda_.cuInit(0); }
  std::unique_ptr<mock_device> device_;
  const api::driver_table& cuda_;
};

TEST_F(mock_test, only_one_at_a_time) { EXPECT_FALSE(open()); }

TEST_F(mock_test, every_implemented_line_has_an_entry_and_refused_ones_none) {
  for (const api::function_info& f : api::functions()) {
    if (f.about.how == api::kind::refused) {
      EXPECT_EQ(cuda_.entry(f.code), nullptr) << f.name;
      continue;
    }
    EXPECT_NE(cuda_.entry(f.code), nullptr) << f.name;
  }
  EXPECT_NE(cuda_.cuMemAddressReserve, nullptr)
      << "the back-end's own memory needs it, whatever programs may call";
}

TEST_F(mock_test, counts_and_logs_with_arguments) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuda_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(cuda_.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(device_->calls("cuStreamSynchronize"), 1u);
  EXPECT_EQ(device_->calls("cuStreamQuery"), 0u);
  const auto log = device_->log();
  EXPECT_EQ(log.back().name, "cuStreamSynchronize");
  EXPECT_THAT(log.back().arguments, ElementsAre(reinterpret_cast<std::uint64_t>(stream)));
}

TEST_F(mock_test, handles_are_distinct_and_deterministic) {
  std::set<CUevent> seen;
  for (int i = 0; i < 100; ++i) {
    CUevent event = nullptr;
    ASSERT_EQ(cuda_.cuEventCreate(&event, 0), CUDA_SUCCESS);
    EXPECT_TRUE(seen.insert(event).second);
  }
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(*seen.begin()), 0x1000u);
}

TEST_F(mock_test, named_function_fails_as_often_as_planned) {
  device_->fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS, 2);
  EXPECT_EQ(cuda_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuda_.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(mock_test, failed_call_leaves_outputs_alone) {
  device_->fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 77;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&address, 16), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address, 77u);
}

TEST_F(mock_test, blocked_call_waits_for_release) {
  device_->block("cuStreamSynchronize");
  std::thread waiter([&] { EXPECT_EQ(cuda_.cuStreamSynchronize(nullptr), CUDA_SUCCESS); });
  EXPECT_TRUE(device_->wait_blocked("cuStreamSynchronize", 1, 5s));
  EXPECT_FALSE(device_->wait_blocked("cuStreamSynchronize", 2, 10ms));
  EXPECT_EQ(cuda_.cuStreamQuery(nullptr), CUDA_SUCCESS) << "others go on";
  device_->release("cuStreamSynchronize");
  waiter.join();
}

TEST_F(mock_test, copies_round_trip_and_memory_is_counted) {
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&a, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&b, 4096), CUDA_SUCCESS);
  EXPECT_EQ(device_->used_memory(), 8192u);
  const char text[] = "there and back";
  char back[sizeof text] = {};
  cuda_.cuMemcpyHtoD_v2(a, text, sizeof text);
  cuda_.cuMemcpyDtoDAsync_v2(b, a, sizeof text, nullptr);
  cuda_.cuMemcpyDtoH_v2(back, b, sizeof text);
  EXPECT_STREQ(back, text);
  unsigned words[3] = {};
  cuda_.cuMemsetD32_v2(a, 7, 3);
  cuda_.cuMemcpyDtoH_v2(words, a, sizeof words);
  EXPECT_THAT(words, ElementsAre(7u, 7u, 7u));
  EXPECT_EQ(cuda_.cuMemFree_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(device_->used_memory(), 4096u);
}

TEST_F(mock_test, foreign_addresses_are_not_dereferenced) {
  CUdeviceptr a = 0;
  ASSERT_EQ(cuda_.cuMemAlloc_v2(&a, 4096), CUDA_SUCCESS);
  char bytes[16] = {};
  EXPECT_EQ(cuda_.cuMemcpyHtoD_v2(0x39ff'ffff'5059'28ff, bytes, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemcpyDtoH_v2(bytes, a + 4090, sizeof bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemcpyDtoD_v2(a, a - 8, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD16_v2(~CUdeviceptr{0} - 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD32_v2(a, 1, ~std::size_t{0} / 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD2D8_v2(a, 4000, 1, 8, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuda_.cuMemsetD2D8_v2(a, 0, 1, 0, ~std::size_t{0}), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD2D8_v2(a, 0, 1, 1, ~std::size_t{0}), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr mapped = 0;
  ASSERT_EQ(cuda_.cuMemAddressReserve(&mapped, 2 << 20, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(mapped, 1, 1), CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp of{};
  CUmemGenericAllocationHandle memory = 0;
  ASSERT_EQ(cuda_.cuMemCreate(&memory, 2 << 20, &of, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda_.cuMemMap(mapped, 2 << 20, 0, memory, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(mapped, 1, 1), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access{};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_EQ(cuda_.cuMemSetAccess(mapped, 2 << 20, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(mapped, 1, 2 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemsetD8_v2(mapped + 1, 1, 2 << 20), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(mock_test, memory_runs_out_exactly) {
  device_->set_total_memory(1 << 20);
  CUdeviceptr a = 0, b = 0;
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&a, 1 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAlloc_v2(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(mock_test, physical_memory_keeps_its_bytes_across_mappings) {
  constexpr std::size_t size = 4 << 20;
  CUdeviceptr range = 0;
  ASSERT_EQ(cuda_.cuMemAddressReserve(&range, size, 0, 0, 0), CUDA_SUCCESS);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuda_.cuMemCreate(&handle, size / 2, &properties, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (CUdeviceptr at : {range, range + size / 2}) {
    ASSERT_EQ(cuda_.cuMemMap(at, size / 2, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuda_.cuMemSetAccess(at, size / 2, &access, 1), CUDA_SUCCESS);
  }
  cuda_.cuMemsetD8_v2(range, 42, 16);
  unsigned char seen = 0;
  cuda_.cuMemcpyDtoH_v2(&seen, range + size / 2 + 15, 1);
  EXPECT_EQ(seen, 42);
  EXPECT_EQ(cuda_.cuMemAddressFree(range, size), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  EXPECT_EQ(cuda_.cuMemUnmap(range, size), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(device_->used_memory(), 0u);
  CUdeviceptr again = 0;
  EXPECT_EQ(cuda_.cuMemAddressFree(range, size), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.cuMemAddressReserve(&again, size, 0, range, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, range) << "fixed addresses are honoured";
}

TEST_F(mock_test, facts_are_those_of_one_board) {
  int count = 0, major = 0, value = 0;
  cuda_.cuDeviceGetCount(&count);
  EXPECT_EQ(count, 1);
  cuda_.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  EXPECT_EQ(major, 9);
  for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id) {
    EXPECT_EQ(cuda_.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), 0), CUDA_SUCCESS) << id;
  }
  EXPECT_EQ(cuda_.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(mock_test, contexts_are_a_stack_per_thread) {
  CUcontext primary = nullptr, seen = nullptr;
  ASSERT_EQ(cuda_.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  cuda_.cuCtxSetCurrent(primary);
  cuda_.cuCtxGetCurrent(&seen);
  EXPECT_EQ(seen, primary);
  std::thread([&] {
    CUcontext other = primary;
    cuda_.cuCtxGetCurrent(&other);
    EXPECT_EQ(other, nullptr);
  }).join();
}

TEST_F(mock_test, many_threads_call_at_once) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) cuda_.cuStreamQuery(nullptr);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(device_->calls("cuStreamQuery"), 6400u);
}

}  // namespace
}  // namespace outboard::device::mock
