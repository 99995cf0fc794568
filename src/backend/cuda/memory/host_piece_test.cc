#include "backend/cuda/memory/host_piece.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t size = 1 << 20;

// A driver of two devices that counts: contexts held by device, contexts on the stack, blocks it knows.
struct known {
  int held[2] = {0, 0}, current = 0;
  std::vector<void*> locked;
  std::uint64_t seen_elsewhere_by = 0;
} driver_knows;

CUresult CUDAAPI retain(CUcontext* out, CUdevice device) {
  ++driver_knows.held[device];
  *out = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 16);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI release(CUdevice device) { return --driver_knows.held[device], CUDA_SUCCESS; }
CUresult CUDAAPI push(CUcontext) { return ++driver_knows.current, CUDA_SUCCESS; }
CUresult CUDAAPI pop(CUcontext*) { return --driver_knows.current, CUDA_SUCCESS; }
CUresult CUDAAPI lock(void* memory, std::size_t, unsigned) {
  EXPECT_EQ(driver_knows.current, 1);
  return driver_knows.locked.push_back(memory), CUDA_SUCCESS;
}
CUresult CUDAAPI unlock(void* memory) {
  EXPECT_EQ(driver_knows.current, 1);
  return std::erase(driver_knows.locked, memory) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult CUDAAPI address(CUdeviceptr* out, void* memory, unsigned) {
  *out = reinterpret_cast<std::uintptr_t>(memory) + driver_knows.seen_elsewhere_by;
  return CUDA_SUCCESS;
}

struct HostPiece : testing::Test {
  HostPiece() {
    driver_knows = {};
    driver.cuDevicePrimaryCtxRetain = retain;
    driver.cuDevicePrimaryCtxRelease_v2 = release;
    driver.cuCtxPushCurrent_v2 = push;
    driver.cuCtxPopCurrent_v2 = pop;
    driver.cuMemHostRegister_v2 = lock;
    driver.cuMemHostUnregister = unlock;
    driver.cuMemHostGetDevicePointer_v2 = address;
    memory = static_cast<char*>(
        ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_EQ(piece.place(reinterpret_cast<std::uint64_t>(memory), size, file.get(), 0), CUDA_SUCCESS);
  }
  ~HostPiece() override { ::munmap(memory, size); }
  bool in_reach() const { return ::pwrite(file.get(), memory, 1, 0) == 1; }

  api::driver_table driver{};
  unique_fd file = make_sealed_file(size, "host_piece_test");
  char* memory = nullptr;
  host_piece piece;
};

TEST_F(HostPiece, shows_the_file_and_leaves_the_range_reserved) {
  memory[5] = 7;
  char byte = 0;
  ASSERT_EQ(::pread(file.get(), &byte, 1, 5), 1);
  EXPECT_EQ(byte, 7);
  EXPECT_TRUE(piece.remove(driver));
  EXPECT_FALSE(in_reach());
  EXPECT_TRUE(driver_knows.locked.empty());
}

TEST_F(HostPiece, is_locked_once_and_holds_its_context_as_long) {
  EXPECT_EQ(piece.page_lock(driver, 1), CUDA_SUCCESS);
  EXPECT_EQ(piece.page_lock(driver, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_knows.locked, std::vector<void*>{memory});
  EXPECT_EQ(driver_knows.held[0], 0);
  EXPECT_EQ(driver_knows.held[1], 1);
  EXPECT_TRUE(piece.remove(driver));
  EXPECT_TRUE(driver_knows.locked.empty());
  EXPECT_EQ(driver_knows.held[1], 0);
  EXPECT_EQ(driver_knows.current, 0);
  EXPECT_FALSE(in_reach());
}

TEST_F(HostPiece, is_refused_where_devices_would_see_it_elsewhere) {
  driver_knows.seen_elsewhere_by = 4096;
  EXPECT_EQ(piece.page_lock(driver, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(driver_knows.locked.empty());
  EXPECT_EQ(driver_knows.held[0], 0);
  EXPECT_EQ(driver_knows.current, 0);
}

TEST_F(HostPiece, is_locked_again_when_its_context_was_reset) {
  ASSERT_EQ(piece.page_lock(driver, 1), CUDA_SUCCESS);
  driver_knows.locked.clear();
  piece.lock_again(driver, 0);  // another device's
  EXPECT_TRUE(driver_knows.locked.empty());
  piece.lock_again(driver, 1);
  EXPECT_EQ(driver_knows.locked, std::vector<void*>{memory});
  EXPECT_EQ(driver_knows.held[1], 1);
  EXPECT_TRUE(piece.remove(driver));
  EXPECT_EQ(driver_knows.held[1], 0);
}

TEST(memory_nodes, the_first_is_there_and_nonsense_is_not) {
  EXPECT_TRUE(has_memory_node(0));
  for (const std::int32_t node : {-1, 1023, 1024, 1 << 30}) EXPECT_FALSE(has_memory_node(node));
}

}  // namespace
}  // namespace outboard::backend
