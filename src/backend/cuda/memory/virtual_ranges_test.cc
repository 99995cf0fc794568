#include "backend/cuda/memory/virtual_ranges.hh"

#include <gtest/gtest.h>

#include "backend/cuda/memory/host_memory_testing.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t size = 2u << 20;

using host_memory_testing::driver_knows;

struct VirtualRanges : testing::Test {
  VirtualRanges() {
    EXPECT_EQ(ranges.reserve({0, 4 * size, 0}, 1, at), CUDA_SUCCESS);
    ranges.created_on_host(7, size, make_sealed_file(size, "virtual_ranges_test"), 0);
  }
  CUresult map(std::uint64_t where, std::uint64_t bytes = size) {
    return ranges.vacant(where, bytes) ? ranges.map_host({where, bytes, 0, 7}, 2) : CUDA_ERROR_INVALID_VALUE;
  }
  CUresult open(std::uint64_t where) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return ranges.set_access({where, size, {}}, {access});
  }

  api::driver_table driver = host_memory_testing::new_driver();
  device_tally held;
  virtual_ranges ranges{driver, held};
  std::uint64_t at = 0;
};

TEST_F(VirtualRanges, the_hosts_memory_lies_in_reserved_addresses_and_over_nothing) {
  EXPECT_NE(map(at - size), CUDA_SUCCESS);
  EXPECT_NE(map(at + 4 * size), CUDA_SUCCESS);
  EXPECT_NE(map(at + 3 * size, 2 * size), CUDA_SUCCESS);
  EXPECT_NE(map(at, 2 * size), CUDA_SUCCESS);  // more than there is
  EXPECT_NE(map(at, 0), CUDA_SUCCESS);
  EXPECT_EQ(map(at + size), CUDA_SUCCESS);
  EXPECT_NE(map(at + size), CUDA_SUCCESS);
  EXPECT_EQ(map(at), CUDA_SUCCESS);
}

TEST_F(VirtualRanges, a_range_with_the_hosts_memory_is_not_given_back) {
  ASSERT_EQ(map(at), CUDA_SUCCESS);
  EXPECT_NE(ranges.free(at, 4 * size), CUDA_SUCCESS);
  ASSERT_EQ(open(at), CUDA_SUCCESS);
  EXPECT_NE(ranges.free(at, 4 * size), CUDA_SUCCESS);
  std::vector<host_piece> going;
  ASSERT_EQ(ranges.unmap(at, size, going), CUDA_SUCCESS);
  ASSERT_EQ(going.size(), 1u);
  EXPECT_NE(ranges.free(at, 4 * size), CUDA_SUCCESS);  // the driver is not through
  EXPECT_FALSE(ranges.vacant(at, size));
  ranges.end_pieces(going);
  EXPECT_TRUE(ranges.vacant(at, size));
  EXPECT_EQ(ranges.free(at, 4 * size), CUDA_SUCCESS);
}

TEST_F(VirtualRanges, what_the_driver_does_not_forget_keeps_its_addresses) {
  ASSERT_EQ(map(at), CUDA_SUCCESS);
  ASSERT_EQ(open(at), CUDA_SUCCESS);
  driver_knows.unlocking = CUDA_ERROR_ILLEGAL_ADDRESS;
  std::vector<host_piece> going;
  ASSERT_EQ(ranges.unmap(at, size, going), CUDA_SUCCESS);
  ranges.end_pieces(going);
  EXPECT_FALSE(ranges.vacant(at, size));
  EXPECT_NE(ranges.free(at, 4 * size), CUDA_SUCCESS);
}

TEST_F(VirtualRanges, what_the_driver_keeps_mapped_stays_alone) {
  ranges.created(8, size, 0);
  ASSERT_EQ(ranges.map({at, size, 0, 8}, 1, 2), CUDA_SUCCESS);
  ASSERT_EQ(map(at + size), CUDA_SUCCESS);
  ASSERT_EQ(ranges.map({at + 2 * size, size, 0, 8}, 1, 2), CUDA_SUCCESS);
  ASSERT_EQ(open(at + size), CUDA_SUCCESS);
  ranges.released(7);
  ranges.released(8);
  EXPECT_EQ(driver_knows.held[0], 1);

  driver_knows.kept = at;
  std::vector<host_piece> going;
  EXPECT_EQ(ranges.unmap(at, 3 * size, going), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(going.size(), 1u);
  ranges.end_pieces(going);
  EXPECT_EQ(driver_knows.held[0], 0);
  EXPECT_EQ(ranges.host_bytes(), 0u);
  EXPECT_FALSE(ranges.vacant(at, size));
  EXPECT_TRUE(ranges.vacant(at + size, 2 * size));
  EXPECT_EQ(ranges.bytes(), size);

  driver_knows.kept = 0;
  going.clear();
  EXPECT_EQ(ranges.unmap(at, 3 * size, going), CUDA_SUCCESS);
  EXPECT_TRUE(going.empty());
  ranges.end_pieces(going);
  EXPECT_TRUE(driver_knows.mapped.empty());
  EXPECT_EQ(driver_knows.held[0], 0);
  EXPECT_EQ(ranges.bytes(), 0u);
}

TEST_F(VirtualRanges, memory_counts_until_it_is_mapped_nowhere) {
  EXPECT_EQ(ranges.host_bytes(), size);
  ASSERT_EQ(map(at), CUDA_SUCCESS);
  ranges.released(7);
  EXPECT_LT(ranges.host_file(7), 0);
  EXPECT_TRUE(ranges.knows(7));
  EXPECT_EQ(ranges.host_bytes(), size);
  std::vector<host_piece> going;
  ASSERT_EQ(ranges.unmap(at, size, going), CUDA_SUCCESS);
  ranges.end_pieces(going);
  EXPECT_EQ(ranges.host_bytes(), 0u);
  EXPECT_FALSE(ranges.knows(7));
}

}  // namespace
}  // namespace outboard::backend
