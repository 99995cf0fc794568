#include "device/cpu/memory/memory.hh"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::size_t mib = 1u << 20;

TEST(range_allocator_test, NeighboursJoinWhenFreed) {
  range_allocator r;
  r.add(0, 1000);
  std::vector<std::uint64_t> taken;
  for (int i = 0; i < 10; ++i) taken.push_back(r.take(100, 1).value());
  EXPECT_FALSE(r.take(1, 1));
  for (const int i : {3, 1, 2, 9, 0, 8, 5, 4, 7, 6}) r.add(taken[static_cast<std::size_t>(i)], 100);
  EXPECT_EQ(r.free_around(500), (std::pair<std::uint64_t, std::uint64_t>{0, 1000}));
  EXPECT_EQ(r.take(512, 256), 0u);
  EXPECT_EQ(r.take(100, 256), 512u);
}

class memory_test : public device_test {
 protected:
  std::pair<std::size_t, std::size_t> info() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(table_.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return {free, total};
  }
  static CUmemAllocationProp properties() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return p;
  }
  CUresult allow(CUdeviceptr at, std::size_t size,
                 CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    CUmemAccessDesc access{};
    access.location = properties().location;
    access.flags = flags;
    return table_.cuMemSetAccess(at, size, &access, 1);
  }
};

TEST_F(memory_test, AllThereIsCanBeHadAndNotAByteMore) {
  const auto [free, total] = info();
  EXPECT_EQ(total, 256 * mib);
  EXPECT_EQ(free, total);
  const CUdeviceptr all = allocate(total);
  EXPECT_EQ(info().first, 0u);
  CUdeviceptr more = 5;
  EXPECT_EQ(table_.cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(more, 5u);
  EXPECT_EQ(table_.cuMemFree_v2(all), CUDA_SUCCESS);
  EXPECT_EQ(info().first, total);
  EXPECT_EQ(table_.cuMemAlloc_v2(&more, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(table_.cuMemAlloc_v2(&more, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(memory_test, FreshMemoryIsZeroHoweverItWasUsed) {
  for (const std::size_t size : {std::size_t{300}, std::size_t{70000}, 3 * mib, 200 * mib}) {
    const CUdeviceptr at = allocate(size);
    ASSERT_EQ(table_.cuMemsetD8_v2(at, 0xab, size), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuMemFree_v2(at), CUDA_SUCCESS);
    const CUdeviceptr again = allocate(size);
    std::vector<unsigned char> bytes(size, 1);
    ASSERT_EQ(table_.cuMemcpyDtoH_v2(bytes.data(), again, size), CUDA_SUCCESS);
    EXPECT_TRUE(std::ranges::all_of(bytes, [](unsigned char b) { return b == 0; })) << size;
    table_.cuMemFree_v2(again);
  }
}

TEST_F(memory_test, SmallBlocksShareGranulesAndComeBackWhole) {
  std::vector<CUdeviceptr> blocks;
  for (std::size_t i = 0; i < 10000; ++i) {
    blocks.push_back(allocate(1 + i % 5000));
    EXPECT_EQ(blocks.back() % 512, 0u);
  }
  EXPECT_LT(info().second - info().first, 64 * mib);
  std::ranges::sort(blocks);
  EXPECT_EQ(std::ranges::adjacent_find(blocks), blocks.end());
  for (std::size_t i = 0; i < blocks.size(); i += 2) EXPECT_EQ(table_.cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
  for (std::size_t i = 1; i < blocks.size(); i += 2) EXPECT_EQ(table_.cuMemFree_v2(blocks[i]), CUDA_SUCCESS);
  EXPECT_EQ(info().first, info().second);
  EXPECT_EQ(table_.cuMemFree_v2(blocks[0]), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(memory_test, CopiesOutsideOfBlocksAreRefused) {
  const CUdeviceptr at = allocate(1000);
  char bytes[16] = {};
  EXPECT_EQ(table_.cuMemcpyHtoD_v2(at + 990, bytes, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemcpyDtoH_v2(bytes, at - 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemcpyHtoD_v2(at, bytes, ~std::size_t{0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemsetD2D8_v2(at, ~std::size_t{0} / 2, 1, 1, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemcpyHtoD_v2(at, bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemcpyHtoD_v2(at + 984, bytes, 16), CUDA_SUCCESS);
}

TEST_F(memory_test, TwoDimensionalCopiesKeepTheirPitches) {
  std::size_t pitch = 0;
  CUdeviceptr at = 0;
  ASSERT_EQ(table_.cuMemAllocPitch_v2(&at, &pitch, 100, 8, 4), CUDA_SUCCESS);
  EXPECT_GE(pitch, 100u);
  std::vector<unsigned char> host(100 * 8), back(100 * 8);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * 7);
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = host.data(), in.srcPitch = 100;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE, in.dstDevice = at, in.dstPitch = pitch;
  in.WidthInBytes = 100, in.Height = 8;
  ASSERT_EQ(table_.cuMemcpy2D_v2(&in), CUDA_SUCCESS);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE, out.srcDevice = at, out.srcPitch = pitch, out.srcY = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = back.data(), out.dstPitch = 100;
  out.WidthInBytes = 100, out.Height = 7;
  ASSERT_EQ(table_.cuMemcpy2D_v2(&out), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(back.data(), host.data() + 100, 700), 0);
  out.Height = 9;
  EXPECT_EQ(table_.cuMemcpy2D_v2(&out), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(memory_test, VirtualMemoryLiesWhereAskedAndCountsWhenCreated) {
  constexpr std::size_t size = 8 * mib;
  CUdeviceptr probe = 0, range = 0;
  ASSERT_EQ(table_.cuMemAddressReserve(&probe, 64 * mib, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemAddressFree(probe, 64 * mib), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemAddressReserve(&range, size, 0, probe, 0), CUDA_SUCCESS);
  EXPECT_EQ(range, probe);
  EXPECT_EQ(info().first, info().second) << "addresses are no memory";
  CUdeviceptr other = 0;
  ASSERT_EQ(table_.cuMemAddressReserve(&other, size, 0, range, 0), CUDA_SUCCESS);
  EXPECT_NE(other, range) << "taken: only a hint";
  const CUmemAllocationProp p = properties();
  CUmemGenericAllocationHandle handle = 0, refused = 0;
  EXPECT_EQ(table_.cuMemCreate(&refused, size + 1, &p, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(table_.cuMemCreate(&handle, size, &p, 0), CUDA_SUCCESS);
  EXPECT_EQ(info().second - info().first, size);
  EXPECT_EQ(table_.cuMemCreate(&refused, 256 * mib, &p, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(table_.cuMemMap(range, size, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemsetD8_v2(range, 1, size), CUDA_ERROR_INVALID_VALUE) << "no access yet";
  ASSERT_EQ(allow(range, size), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemsetD8_v2(range, 1, size), CUDA_SUCCESS);
  ASSERT_EQ(launch(function(load(), "store"), nullptr, range + size - 4, 0x55u), CUDA_SUCCESS);
  EXPECT_EQ(read(range + size - 4), 0x55u);
  EXPECT_EQ(table_.cuMemRelease(handle), CUDA_SUCCESS) << "lives on while mapped";
  EXPECT_EQ(read(range + size - 4), 0x55u);
  EXPECT_EQ(table_.cuMemAddressFree(range, size), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  EXPECT_EQ(table_.cuMemUnmap(range, size), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemAddressFree(range, size), CUDA_SUCCESS);
}

TEST_F(memory_test, PhysicalMemoryKeepsBytesAndIsCleanForTheNext) {
  constexpr std::size_t size = 2 * mib;
  const CUmemAllocationProp p = properties();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0, next = 0, again = 0;
  table_.cuMemAddressReserve(&range, 2 * size, 0, 0, 0);
  ASSERT_EQ(table_.cuMemCreate(&handle, size, &p, 0), CUDA_SUCCESS);
  for (const CUdeviceptr at : {range, range + size})
    ASSERT_EQ(table_.cuMemMap(at, size, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(allow(range, 2 * size), CUDA_SUCCESS);
  table_.cuMemsetD32_v2(range, 0x1234, size / 4);
  EXPECT_EQ(read(range + size), 0x1234u) << "one memory at two addresses";
  EXPECT_EQ(table_.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 100)), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  table_.cuMemRelease(again);
  EXPECT_EQ(allow(range, size, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemsetD8_v2(range, 1, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(table_.cuMemUnmap(range, 2 * size), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemMap(range, size, 0, handle, 0), CUDA_SUCCESS);
  allow(range, size);
  EXPECT_EQ(read(range), 0x1234u) << "unmapping loses nothing";
  table_.cuMemUnmap(range, size);
  table_.cuMemRelease(handle);
  EXPECT_EQ(table_.cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(table_.cuMemCreate(&next, size, &p, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemMap(range, size, 0, next, 0), CUDA_SUCCESS);
  allow(range, size);
  EXPECT_EQ(read(range), 0u);
}

TEST_F(memory_test, PointersAreKnownByTheirKind) {
  const CUdeviceptr at = allocate(1000);
  CUdeviceptr managed = 0, base = 0;
  std::size_t size = 0;
  void* pinned = nullptr;
  table_.cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL);
  table_.cuMemHostAlloc(&pinned, 100, 0);
  const auto type = [&](CUdeviceptr p) {
    unsigned t = 0;
    return table_.cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_SUCCESS ? t : 0;
  };
  EXPECT_EQ(type(at + 999), static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(type(reinterpret_cast<CUdeviceptr>(pinned) + 50), static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(type(at + 1000), 0u);
  unsigned is_managed = 0;
  table_.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed);
  EXPECT_EQ(is_managed, 1u);
  EXPECT_EQ(table_.cuMemGetAddressRange_v2(&base, &size, at + 10), CUDA_SUCCESS);
  EXPECT_EQ(base, at);
  EXPECT_EQ(size, 1000u);
}

TEST_F(memory_test, RegisteredMemoryIsTheDevicesToo) {
  std::vector<unsigned> host(1024, 41);
  ASSERT_EQ(table_.cuMemHostRegister_v2(host.data(), 4096, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemHostRegister_v2(host.data(), 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  const CUfunction f = function(load(), "increment");
  ASSERT_EQ(launch(f, nullptr, reinterpret_cast<CUdeviceptr>(&host[100])), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(host[100], 42u);
  EXPECT_EQ(table_.cuMemHostUnregister(host.data()), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemHostUnregister(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(memory_test, StreamOrderedMemoryIsFreedInItsTurn) {
  CUdeviceptr at = 0;
  ASSERT_EQ(table_.cuMemAllocAsync(&at, 100 * mib, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemsetD8Async(at, 1, 100 * mib, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemFreeAsync(at, nullptr), CUDA_SUCCESS);
  CUdeviceptr next = 0;
  ASSERT_EQ(table_.cuMemAllocAsync(&next, 200 * mib, nullptr), CUDA_SUCCESS)
      << "waits for the free behind the fill";
  EXPECT_EQ(read(next), 0u);
}

TEST_F(memory_test, EndOfAContextGivesItsMemoryBack) {
  CUcontext own = nullptr;
  ASSERT_EQ(table_.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
  allocate(50 * mib);
  load();
  void* pinned = nullptr;
  table_.cuMemHostAlloc(&pinned, 100, 0);
  EXPECT_EQ(table_.cuCtxDestroy_v2(own), CUDA_SUCCESS);
  EXPECT_EQ(info().first, info().second);
}

/// Who finds memory while it is going may touch it until the flight ends: what takes it away (`end`) returns
/// no sooner. The first flight holds up `end`, the second one finds the memory then.
void expect_waits_for_finders(memory& store, std::uint64_t at, const std::function<void()>& end) {
  using namespace std::chrono_literals;
  std::atomic<bool> over{false};
  std::optional<memory::flight> first(std::in_place, store);
  std::thread ending([&] {
    end();
    over = true;
  });
  std::this_thread::sleep_for(20ms);  // if `end` comes later, it waits for both flights: that is right, too
  std::optional<memory::flight> second(std::in_place, store);
  ASSERT_TRUE(store.accessible(at, 4096, true));
  first.reset();
  for (int i = 0; i < 200 && store.accessible(at, 4096, true); ++i) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 50 && !over; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(over) << "the memory may be unmapped, and a flight has found it";
  second.reset();
  ending.join();
  EXPECT_FALSE(store.accessible(at, 4096, true));
}

TEST(flight_test, RegisteredMemoryStaysForWhoeverFoundIt) {
  const auto store = std::move(*memory::create(16 * mib));
  std::vector<char> block(64 << 10);
  const auto at = reinterpret_cast<std::uint64_t>(block.data());
  ASSERT_EQ(store->host_register(at, block.size(), 1, 0), CUDA_SUCCESS);
  expect_waits_for_finders(*store, at, [&] { EXPECT_EQ(store->host_unregister(at), CUDA_SUCCESS); });
}

TEST(flight_test, HostBlocksStayForWhoeverFoundThem) {
  const auto store = std::move(*memory::create(16 * mib));
  std::uint64_t at = 0;
  ASSERT_EQ(store->host_allocate(64 << 10, 1, 0, at), CUDA_SUCCESS);
  expect_waits_for_finders(*store, at, [&] { EXPECT_EQ(store->host_release(at), CUDA_SUCCESS); });
  ASSERT_EQ(store->host_allocate(64 << 10, 1, 0, at), CUDA_SUCCESS);
  expect_waits_for_finders(*store, at, [&] { store->release_owned(1); });
}

}  // namespace
}  // namespace outboard::device::cpu
