// A bitonic sorting network through the driver API: page-locked memory, asynchronous copies on a stream, an
// event, many launches; prints a sum over the sorted keys.
#include <algorithm>

#include "driver.hh"

static const char* const ptx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry exchange(.param .u64 keys, .param .u32 distance, .param .u32 block) {
  .reg .pred %p<5>;
  .reg .b32 %r<12>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [keys];
  ld.param.u32 %r1, [distance];
  ld.param.u32 %r2, [block];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  xor.b32 %r7, %r6, %r1;
  setp.le.u32 %p1, %r7, %r6;
  @%p1 bra done;
  mul.wide.u32 %d2, %r6, 4;
  mul.wide.u32 %d3, %r7, 4;
  add.u64 %d4, %d1, %d2;
  add.u64 %d5, %d1, %d3;
  ld.global.u32 %r8, [%d4];
  ld.global.u32 %r9, [%d5];
  and.b32 %r10, %r6, %r2;
  setp.eq.u32 %p2, %r10, 0;
  setp.gt.u32 %p3, %r8, %r9;
  xor.pred %p4, %p2, %p3;
  @%p4 bra done;
  st.global.u32 [%d4], %r9;
  st.global.u32 [%d5], %r8;
done:
  ret;
})";

int main() {
  const machine m(ptx);
  const std::uint32_t n = 1 << 13;
  const std::size_t bytes = n * sizeof(std::uint32_t);
  void* locked = nullptr;
  MUST(cuMemAllocHost(&locked, bytes));
  auto* const keys = static_cast<std::uint32_t*>(locked);
  std::vector<std::uint32_t> expected(n);
  numbers random;
  for (std::uint32_t i = 0; i < n; ++i) keys[i] = expected[i] = random.next();
  std::sort(expected.begin(), expected.end());
  CUstream stream;
  CUevent sorted;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&sorted, CU_EVENT_DISABLE_TIMING));
  const CUdeviceptr there = device_memory(bytes);
  const CUfunction exchange = m.function("exchange");
  MUST(cuMemcpyHtoDAsync(there, keys, bytes, stream));
  for (std::uint32_t block = 2; block <= n; block *= 2) {
    for (std::uint32_t distance = block / 2; distance; distance /= 2)
      launch(exchange, n, stream, there, distance, block);
  }
  MUST(cuMemcpyDtoHAsync(keys, there, bytes, stream));
  MUST(cuEventRecord(sorted, stream));
  MUST(cuEventSynchronize(sorted));
  EXPECT(std::equal(expected.begin(), expected.end(), keys));
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) sum = sum * 31 + keys[i];
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  MUST(cuMemFree(there));
  MUST(cuMemFreeHost(locked));
  MUST(cuEventDestroy(sorted));
  MUST(cuStreamDestroy(stream));
  return pass("driver_sort");
}
