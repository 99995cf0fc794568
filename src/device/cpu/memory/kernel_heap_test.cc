#include "device/cpu/memory/kernel_heap.hh"

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

TEST(kernel_heap_test, GivesAlignedBlocksAndTakesThemBack) {
  kernel_heap heap(0x10000, 64);
  const std::uint64_t a = heap.allocate(1), b = heap.allocate(17), c = heap.allocate(16);
  EXPECT_EQ(a % 16 + b % 16 + c % 16, 0u);
  EXPECT_NE(a, 0u);
  EXPECT_NE(b, 0u);
  EXPECT_NE(c, 0u);
  EXPECT_EQ(heap.allocate(1), 0u);
  EXPECT_FALSE(heap.release(b + 16));
  EXPECT_TRUE(heap.release(b));
  EXPECT_FALSE(heap.release(b));
  EXPECT_EQ(heap.allocate(32), b);
  EXPECT_EQ(heap.allocate(0), 0u);
  EXPECT_EQ(heap.allocate(~std::uint64_t{0}), 0u);
}

constexpr const char* heap_ptx = R"(
.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b64 func_retval0) malloc(.param .b64 size);
.visible .entry take(.param .u64 at, .param .u64 bytes)
{
  .reg .b64 p, n, a;
  ld.param.u64 p, [at];
  ld.param.u64 n, [bytes];
  { .param .b64 size; .param .b64 got;
    st.param.b64 [size], n; call.uni (got), malloc, (size); ld.param.b64 a, [got]; }
  st.global.u64 [p], a;
  ret;
}
)";

class heap_limit_test : public device_test {
 protected:
  std::uint64_t take(CUfunction f, std::uint64_t bytes) {
    const CUdeviceptr at = allocate(8);
    EXPECT_EQ(launch(f, nullptr, at, bytes), CUDA_SUCCESS);
    std::uint64_t got = 1;
    EXPECT_EQ(table_.cuMemcpyDtoH_v2(&got, at, sizeof got), CUDA_SUCCESS);
    return got;
  }
};

TEST_F(heap_limit_test, TheLimitHoldsAndIsFixedByTheFirstLaunch) {
  ASSERT_EQ(table_.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 16), CUDA_SUCCESS);
  const CUfunction f = function(load(heap_ptx), "take");
  const std::uint64_t first = take(f, 40000);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(take(f, 40000), 0u);
  EXPECT_NE(take(f, 20000), 0u);  // what a kernel takes stays until it is freed
  EXPECT_EQ(table_.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace outboard::device::cpu
