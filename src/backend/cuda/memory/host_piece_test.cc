#include "backend/cuda/memory/host_piece.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "backend/cuda/memory/host_memory_testing.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t size = 1 << 20;

using host_memory_testing::driver_knows;

struct HostPiece : testing::Test {
  HostPiece() {
    memory = static_cast<char*>(
        ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_EQ(piece.place(reinterpret_cast<std::uint64_t>(memory), size, file.get(), 0), CUDA_SUCCESS);
  }
  ~HostPiece() override { ::munmap(memory, size); }
  bool in_reach() const { return ::pwrite(file.get(), memory, 1, 0) == 1; }

  api::driver_table driver = host_memory_testing::new_driver();
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
