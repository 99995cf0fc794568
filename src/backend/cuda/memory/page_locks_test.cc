#include "backend/cuda/memory/page_locks.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

namespace outboard::backend {
namespace {

constexpr std::size_t size = 64 << 10;

CUresult answer = CUDA_SUCCESS;
CUresult CUDAAPI unregister(void*) { return answer; }

char* made() {
  void* got = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<char*>(got);
}

bool mapped(void* memory) { return ::msync(memory, size, MS_ASYNC) == 0; }

TEST(page_locks, a_forgotten_block_is_unmapped) {
  api::driver_table driver{};
  driver.cuMemHostUnregister = unregister;
  for (const CUresult code : {CUDA_SUCCESS, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED}) {
    answer = code;
    char* const memory = made();
    EXPECT_TRUE(give_back_page_locked(driver, memory, size));
    EXPECT_FALSE(mapped(memory));
  }
}

TEST(page_locks, a_block_that_the_driver_still_knows_keeps_its_addresses_and_loses_its_bytes) {
  api::driver_table driver{};
  driver.cuMemHostUnregister = unregister;
  answer = CUDA_ERROR_ILLEGAL_ADDRESS;
  char* const memory = made();
  memory[100] = 5;
  EXPECT_FALSE(give_back_page_locked(driver, memory, size));
  ASSERT_TRUE(mapped(memory));
  EXPECT_EQ(memory[100], 0);
  memory[size - 1] = 1;
  ::munmap(memory, size);
}

TEST(page_locks, a_forgotten_block_of_a_reservation_leaves_its_addresses_reserved) {
  api::driver_table driver{};
  driver.cuMemHostUnregister = unregister;
  answer = CUDA_SUCCESS;
  char* const memory = made();
  memory[100] = 5;
  give_back_page_locked(driver, memory, size, range_after::reserved);
  ASSERT_TRUE(mapped(memory));
  EXPECT_EQ(::mprotect(memory, size, PROT_READ), 0);
  EXPECT_EQ(memory[100], 0);
  ::munmap(memory, size);
}

}  // namespace
}  // namespace outboard::backend
