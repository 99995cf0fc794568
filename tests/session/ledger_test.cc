// The worker's ledger equals what cuMemGetInfo shows for every call that allocates.
#include <gtest/gtest.h>

#include <functional>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/remote.hh"
#include "frontend/process.hh"
#include "server.hh"

namespace outboard::tests {
namespace {

namespace ends = frontend::cuda::ends;
using frontend::process;

struct reading {
  std::uint64_t free = 0, ledger = 0;
};

reading read() {
  reading r;
  std::size_t free = 0, total = 0;
  EXPECT_EQ(ends::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  marshal::ledger_reply held;
  EXPECT_EQ(process::instance().ledger(held), CUDA_SUCCESS);
  r.free = free;
  r.ledger = held.device();
  return r;
}

/// Runs `what` and expects that both books moved by the same number of bytes.
template <class What>
void same_change(const char* name, What&& what) {
  const reading before = read();
  ASSERT_EQ(what(), CUDA_SUCCESS) << name;
  const reading after = read();
  EXPECT_EQ(before.free - after.free, after.ledger - before.ledger) << name;
}

/// In a fresh process, with the first device's primary context.
bool in_context(const server& s, const std::function<void()>& what) {
  return in_fresh_process([&] {
    boot(s);
    CUcontext context = nullptr;
    ASSERT_EQ(ends::cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuCtxSetCurrent(context), CUDA_SUCCESS);
    what();
  });
}

TEST(ledger, equals_the_change_of_memory_info_for_every_allocating_call) {
  const server s("cpu");
  EXPECT_TRUE(in_context(s, [&] {
    CUdeviceptr small = 0, second = 0, large = 0, pitched = 0, pooled = 0;
    std::size_t pitch = 0;
    void* pinned = nullptr;
    same_change("small", [&] { return ends::cuMemAlloc_v2(&small, 1000); });
    same_change("second small", [&] { return ends::cuMemAlloc_v2(&second, 100); });
    same_change("large", [&] { return ends::cuMemAlloc_v2(&large, 33u << 20); });
    same_change("pitched", [&] { return ends::cuMemAllocPitch_v2(&pitched, &pitch, 5000, 1000, 4); });
    same_change("pooled", [&] { return ends::cuMemAllocAsync(&pooled, 4u << 20, nullptr); });
    same_change("pinned", [&] { return ends::cuMemHostAlloc(&pinned, 1 << 20, 0); });
    CUarray array = nullptr;
    CUmipmappedArray levels = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR about{1024, 1024, 4, CU_AD_FORMAT_HALF, 2, 0},
        square{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 2, 0};
    same_change("array", [&] { return ends::cuArray3DCreate_v2(&array, &about); });
    same_change("mipmapped array", [&] { return ends::cuMipmappedArrayCreate(&levels, &square, 1); });
    same_change("free array", [&] { return ends::cuArrayDestroy(array); });
    same_change("free mipmapped array", [&] { return ends::cuMipmappedArrayDestroy(levels); });
    same_change("free large", [&] { return ends::cuMemFree_v2(large); });
    same_change("free small", [&] { return ends::cuMemFree_v2(small); });
    same_change("free pooled", [&] { return ends::cuMemFree_v2(pooled); });
    same_change("free pitched", [&] { return ends::cuMemFree_v2(pitched); });
    EXPECT_GE(pitch, 5000u);
    CUdeviceptr managed = 0, tiny = 0;
    CUmemGenericAllocationHandle block = 0;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    same_change("tiny, pooled", [&] { return ends::cuMemAllocAsync(&tiny, 10, nullptr); });
    same_change("managed", [&] { return ends::cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL); });
    same_change("virtual", [&] { return ends::cuMemCreate(&block, 6u << 20, &prop, 0); });
    same_change("free virtual", [&] { return ends::cuMemRelease(block); });
    same_change("free managed", [&] { return ends::cuMemFree_v2(managed); });
    same_change("free tiny", [&] { return ends::cuMemFree_v2(tiny); });
  }));
}

/// As where faults shall dump: a driver's dump has no memory that lies in the window.
TEST(ledger, knows_blocks_beside_the_window) {
  const server s("cpu");
  EXPECT_TRUE(in_context(s, [&] {
    process& p = process::instance();
    CUdeviceptr before = 0, large = 0, small = 0, start = 0;
    same_change("in the window", [&] { return ends::cuMemAlloc_v2(&before, 4u << 20); });
    ASSERT_NE(p.memory().window_slot_at(before), nullptr);
    p.memory().leave_window();
    same_change("large", [&] { return ends::cuMemAlloc_v2(&large, 5u << 20); });
    same_change("small", [&] { return ends::cuMemAlloc_v2(&small, 100); });
    EXPECT_EQ(p.memory().window_slot_at(large), nullptr) << std::hex << large;
    EXPECT_EQ(p.memory().window_slot_at(small), nullptr) << std::hex << small;
    std::size_t size = 0;
    EXPECT_EQ(ends::cuMemGetAddressRange_v2(&start, &size, large + 77), CUDA_SUCCESS);
    EXPECT_EQ(start, large);
    EXPECT_EQ(size, 5u << 20);
    const unsigned wanted = 7;
    unsigned word = 0;
    const CUdeviceptr last = large + (5u << 20) - sizeof word;
    EXPECT_EQ(ends::cuMemcpyHtoD_v2(last, &wanted, sizeof word), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemcpyDtoH_v2(&word, last, sizeof word), CUDA_SUCCESS);
    EXPECT_EQ(word, 7u);
    same_change("free small", [&] { return ends::cuMemFree_v2(small); });
    same_change("free large", [&] { return ends::cuMemFree_v2(large); });
    EXPECT_EQ(ends::cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
    same_change("free what was in the window", [&] { return ends::cuMemFree_v2(before); });
    ASSERT_EQ(ends::cuMemAlloc_v2(&large, 5u << 20), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(read().ledger, 0u);
  }));
}

TEST(ledger, counts_page_locked_memory_of_the_server) {
  const server s("cpu");
  EXPECT_TRUE(in_context(s, [&] {
    marshal::ledger_reply held;
    void* pinned = nullptr;
    CUdeviceptr there = 0;
    ASSERT_EQ(ends::cuMemHostAlloc(&pinned, 3u << 20, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemHostGetDevicePointer_v2(&there, pinned, 0), CUDA_SUCCESS);
    ASSERT_EQ(process::instance().ledger(held), CUDA_SUCCESS);
    EXPECT_EQ(held.pinned, 3u << 20);
    ASSERT_EQ(ends::cuMemFreeHost(pinned), CUDA_SUCCESS);
    ASSERT_EQ(process::instance().ledger(held), CUDA_SUCCESS);
    EXPECT_EQ(held.pinned, 0u);
  }));
}

TEST(ledger, an_impossible_size_is_out_of_memory_and_changes_nothing) {
  const server s("cpu");
  EXPECT_TRUE(in_context(s, [&] {
    const reading before = read();
    CUdeviceptr never = 0;
    EXPECT_EQ(ends::cuMemAlloc_v2(&never, 1ull << 62), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(ends::cuMemAlloc_v2(&never, before.free + (4u << 20)), CUDA_ERROR_OUT_OF_MEMORY);
    const reading after = read();
    EXPECT_EQ(before.free, after.free);
    EXPECT_EQ(before.ledger, after.ledger);
  }));
}

}  // namespace
}  // namespace outboard::tests
