// c = a + b through the driver API: the program's own memory, synchronous copies; prints a sum of the result.
#include "driver.hh"

static const char* const ptx = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 first, .param .u64 second, .param .u64 sum, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %d<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %d1, [first];
  ld.param.u64 %d2, [second];
  ld.param.u64 %d3, [sum];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %d4, %r5, 4;
  add.u64 %d5, %d1, %d4;
  add.u64 %d6, %d2, %d4;
  add.u64 %d7, %d3, %d4;
  ld.global.f32 %f1, [%d5];
  ld.global.f32 %f2, [%d6];
  add.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%d7], %f3;
done:
  ret;
})";

int main() {
  const machine m(ptx);
  const std::uint32_t n = 300007;  // more than one piece of a copy, and not a multiple of a block
  std::vector<float> a(n), b(n), c(n);
  numbers random;
  for (std::uint32_t i = 0; i < n; ++i) a[i] = random.next_float(), b[i] = random.next_float();
  const std::size_t bytes = n * sizeof(float);
  const CUdeviceptr first = device_memory(bytes), second = device_memory(bytes), sum = device_memory(bytes);
  MUST(cuMemcpyHtoD(first, a.data(), bytes));
  MUST(cuMemcpyHtoD(second, b.data(), bytes));
  launch(m.function("add"), n, nullptr, first, second, sum, n);
  MUST(cuMemcpyDtoH(c.data(), sum, bytes));
  double all = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    EXPECT(c[i] == a[i] + b[i]);
    all += c[i];
  }
  std::printf("sum %.6f\n", all);
  for (const CUdeviceptr each : {first, second, sum}) MUST(cuMemFree(each));
  return pass("driver_vector_add");
}
