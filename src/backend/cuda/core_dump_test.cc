#include "backend/cuda/core_dump.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

int asked = 0;

CUresult CUDAAPI set_attribute(CUcoredumpSettings, void*, std::size_t*) {
  ++asked;
  return CUDA_SUCCESS;
}

TEST(core_dump, is_refused_where_the_driver_cannot_write_one) {
  api::driver_table driver{};
  driver.cuCoredumpSetAttributeGlobal = set_attribute;
  core_dump none([](std::span<const std::byte>) {}, false);
  EXPECT_EQ(none.set(driver, true, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(asked, 0) << "the driver must not begin what it cannot end";
  EXPECT_FALSE(none.expected());
  EXPECT_EQ(none.allowed_context_flags(CU_CTX_COREDUMP_ENABLE), 0u);

  core_dump some([](std::span<const std::byte>) {}, true);
  EXPECT_EQ(some.set(driver, true, 0), CUDA_SUCCESS);
  EXPECT_EQ(asked, 3) << "file, flags, whether faults dump";
  EXPECT_TRUE(some.expected());
}

}  // namespace
}  // namespace outboard::backend
