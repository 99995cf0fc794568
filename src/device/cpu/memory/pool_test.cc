#include "device/cpu/memory/pool.hh"

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::size_t mib = 1u << 20;

class pool_test : public device_test {
 protected:
  static CUmemPoolProps properties() {
    CUmemPoolProps p{};
    p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return p;
  }
  CUmemoryPool make() {
    CUmemoryPool made = nullptr;
    const CUmemPoolProps p = properties();
    EXPECT_EQ(table_.cuMemPoolCreate(&made, &p), CUDA_SUCCESS);
    return made;
  }
  std::uint64_t account(CUmemoryPool p, CUmemPool_attribute which) {
    cuuint64_t value = ~0ull;
    EXPECT_EQ(table_.cuMemPoolGetAttribute(p, which, &value), CUDA_SUCCESS);
    return value;
  }
  CUdeviceptr take(CUmemoryPool p, std::size_t size) {
    CUdeviceptr at = 0;
    EXPECT_EQ(table_.cuMemAllocFromPoolAsync(&at, size, p, nullptr), CUDA_SUCCESS);
    return at;
  }
  std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(table_.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return free;
  }
};

TEST_F(pool_test, WhatPoolsHoldIsGoneFromTheDeviceAndNothingElse) {
  const std::size_t before = free_memory();
  const CUmemoryPool p = make();
  const CUdeviceptr small = take(p, 100), large = take(p, 5 * mib);
  EXPECT_EQ(before - free_memory(), account(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(account(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 512 + 5 * mib);
  EXPECT_EQ(table_.cuMemFreeAsync(small, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemFree_v2(large), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), before);
  EXPECT_EQ(account(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_GE(account(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 5 * mib);
  EXPECT_EQ(table_.cuMemPoolDestroy(p), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemPoolDestroy(p), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(pool_test, ManySmallBlocksShareTheirChunks) {
  const CUmemoryPool p = make();
  std::vector<CUdeviceptr> all;
  for (int i = 0; i < 10000; ++i) all.push_back(take(p, 8));
  EXPECT_LE(account(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * mib);
  for (const CUdeviceptr at : all) ASSERT_EQ(table_.cuMemFreeAsync(at, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(account(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

TEST_F(pool_test, KeepsUpToItsThresholdAndGivesItWhenTheDeviceIsShort) {
  const CUmemoryPool p = make();
  cuuint64_t all = ~0ull;
  ASSERT_EQ(table_.cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), CUDA_SUCCESS);
  const CUdeviceptr first = take(p, 200 * mib);
  EXPECT_EQ(table_.cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(account(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 200 * mib);
  CUdeviceptr other = 0;
  EXPECT_EQ(table_.cuMemAllocAsync(&other, 200 * mib, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(account(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  EXPECT_EQ(table_.cuMemFree_v2(other), CUDA_SUCCESS);
}

TEST_F(pool_test, FreshAndFreedMemoryIsZeroAndFreedMemoryIsOutOfReach) {
  const CUmemoryPool p = make();
  const CUdeviceptr keeper = take(p, 512), at = take(p, 4096);
  EXPECT_EQ(table_.cuMemsetD32_v2(at, 7, 1024), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemFreeAsync(at, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  unsigned value = 0;
  EXPECT_EQ(table_.cuMemcpyDtoH_v2(&value, at, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(read(take(p, 4096)), 0u);
  EXPECT_EQ(table_.cuMemFreeAsync(keeper + 16, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(pool_test, ADestroyedPoolOutlivesItsHandleByItsBlocks) {
  const std::size_t before = free_memory();
  const CUmemoryPool p = make();
  ASSERT_EQ(table_.cuDeviceSetMemPool(0, p), CUDA_SUCCESS);
  CUdeviceptr at = 0;
  ASSERT_EQ(table_.cuMemAllocAsync(&at, mib, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemPoolDestroy(p), CUDA_SUCCESS);
  CUmemoryPool now = nullptr, standard = nullptr;
  EXPECT_EQ(table_.cuDeviceGetMemPool(&now, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
  EXPECT_EQ(now, standard);
  EXPECT_EQ(table_.cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemsetD32_v2(at, 9, 4), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 9u);
  EXPECT_EQ(table_.cuMemFree_v2(at), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), before);
}

TEST_F(pool_test, RefusesWhatTheDriverRefuses) {
  CUmemPoolProps wrong = properties();
  CUmemoryPool none = nullptr;
  wrong.location.id = 1;
  EXPECT_EQ(table_.cuMemPoolCreate(&none, &wrong), CUDA_ERROR_INVALID_DEVICE);
  wrong = properties();
  wrong.maxSize = mib;
  ASSERT_EQ(table_.cuMemPoolCreate(&none, &wrong), CUDA_SUCCESS);
  CUdeviceptr at = 0;
  EXPECT_EQ(table_.cuMemAllocFromPoolAsync(&at, 2 * mib, none, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  cuuint64_t one = 1;
  EXPECT_EQ(table_.cuMemPoolSetAttribute(none, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemPoolSetAttribute(none, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &one),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemPoolGetAttribute(none, static_cast<CUmemPool_attribute>(99), &one),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(0x1230), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(pool_test, AdviceIsKeptByRangesAndOnlyForManagedMemory) {
  CUdeviceptr at = 0;
  ASSERT_EQ(table_.cuMemAllocManaged(&at, 4 * mib, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0}, host{CU_MEM_LOCATION_TYPE_HOST, 0};
  const auto ask = [&](CUdeviceptr from, std::size_t size, CUmem_range_attribute which) {
    int value = 77;
    EXPECT_EQ(table_.cuMemRangeGetAttribute(&value, sizeof value, which, from, size), CUDA_SUCCESS);
    return value;
  };
  constexpr auto mostly = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  constexpr auto last = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
  EXPECT_EQ(ask(at, 4 * mib, last), -2);
  EXPECT_EQ(table_.cuMemAdvise_v2(at + mib, mib, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_SUCCESS);
  EXPECT_EQ(ask(at + mib, mib, mostly), 1);
  EXPECT_EQ(ask(at + mib + 4096, 4096, mostly), 1);
  EXPECT_EQ(ask(at, 2 * mib, mostly), 0);
  EXPECT_EQ(ask(at + mib, 2 * mib, mostly), 0);
  EXPECT_EQ(table_.cuMemPrefetchAsync_v2(at, 4 * mib, device, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemPrefetchAsync_v2(at, mib, host, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(ask(at, mib, last), -1);
  EXPECT_EQ(ask(at + mib, 3 * mib, last), 0);
  EXPECT_EQ(ask(at, 4 * mib, last), -2);
  EXPECT_EQ(table_.cuMemAdvise_v2(at, mib, CU_MEM_ADVISE_SET_ACCESSED_BY, device), CUDA_SUCCESS);
  int accessed[3] = {7, 7, 7};
  EXPECT_EQ(
      table_.cuMemRangeGetAttribute(accessed, sizeof accessed, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at, mib),
      CUDA_SUCCESS);
  EXPECT_THAT(accessed, testing::ElementsAre(0, -2, -2));
  EXPECT_EQ(table_.cuMemAdvise_v2(at, 5 * mib, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemAdvise_v2(allocate(4096), 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemPrefetchAsync_v2(at, mib, {CU_MEM_LOCATION_TYPE_DEVICE, 1}, 0, nullptr),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(table_.cuStreamAttachMemAsync(nullptr, at, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemFree_v2(at), CUDA_SUCCESS);
}

TEST_F(pool_test, a_block_is_freed_once_even_before_the_stream_comes_to_it) {
  const CUdeviceptr flag = allocate(4), pooled = take(make(), mib), plain = allocate(mib);
  ASSERT_EQ(table_.cuMemsetD32_v2(flag, 0, 1), CUDA_SUCCESS);
  CUstream stream = nullptr, other = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(launch(function(load(), "spin_until"), stream, flag), CUDA_SUCCESS);
  for (const CUdeviceptr block : {pooled, plain}) {
    EXPECT_EQ(table_.cuMemFreeAsync(block, stream), CUDA_SUCCESS);
    EXPECT_EQ(table_.cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
  }
  ASSERT_EQ(table_.cuMemsetD32Async(flag, 1, 1, other), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

}  // namespace
}  // namespace outboard::device::cpu
