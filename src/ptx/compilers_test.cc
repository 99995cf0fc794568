// PTX of compilers other than nvcc, kept as text: each fixture begins with its source and command.
// there.
#include <bit>
#include <cmath>

#include "ptx/executor_fixture.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

class compilers_test : public executor_fixture {};

TEST_F(compilers_test, clang_opencl) {
  load(fixture_text("clang_opencl"));
  ASSERT_TRUE(module_);
  std::vector<int> steps(100), sorted(8);
  std::vector<float> in(128), out(2);
  std::vector<unsigned char> bytes(1000);
  std::vector<u32> bins(256);
  for (std::size_t n = 0; n < in.size(); ++n) in[n] = static_cast<float>(n % 7);
  for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<unsigned char>(n * n % 251);
  device(steps), device(sorted), device(in), device(out), device(bytes), device(bins);
  auto r = launch("steps", {2, 1, 1}, {64, 1, 1}, packed(steps.data(), u32{100}));
  ASSERT_TRUE(r.ok()) << r.text;
  for (int n = 1; n <= 100; ++n) {
    int count = 0;
    for (int m = n; m != 1; m = m & 1 ? 3 * m + 1 : m / 2) ++count;
    EXPECT_EQ(steps[static_cast<std::size_t>(n - 1)], count);
  }
  // A __local argument is the offset of dynamic shared memory; there is no static one here.
  r = launch("block_sum", {2, 1, 1}, {64, 1, 1}, packed(in.data(), out.data(), u64{0}), 256);
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t b = 0; b < 2; ++b) {
    float sum = 0;
    for (std::size_t t = 0; t < 64; ++t) sum += in[b * 64 + t] * static_cast<float>(1 << (t & 3));
    EXPECT_EQ(out[b], sum);
  }
  r = launch("histogram", {8, 1, 1}, {128, 1, 1}, packed(bytes.data(), bins.data(), u32{1000}));
  ASSERT_TRUE(r.ok()) << r.text;
  std::vector<u32> wanted(256);
  for (const auto b : bytes) ++wanted[b];
  EXPECT_EQ(bins, wanted);
  r = launch("local_array", {1, 1, 1}, {8, 1, 1}, packed(sorted.data(), 3));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(sorted, (std::vector<int>(8, 3 * 100 + 12)));
}

TEST_F(compilers_test, clang_cuda) {
  load(fixture_text("clang_cuda"));
  ASSERT_TRUE(module_);
  std::vector<double> folds(8);
  std::vector<int> ints(64);
  std::vector<float> in(64), out(64);
  std::vector<long long> wide(4);
  device(folds), device(ints), device(in), device(out), device(wide);
  auto r = launch("folds", {1, 1, 1}, {8, 1, 1}, packed(folds.data(), 6));
  ASSERT_TRUE(r.ok()) << r.text;
  constexpr double weights[] = {0.5, 0.25, 0.125};
  for (int t = 0; t < 8; ++t) {
    double v = t;
    for (int n = 6; n > 0; --n) v = v * weights[n % 3] + n;
    EXPECT_EQ(folds[static_cast<std::size_t>(t)], v);
  }
  r = launch("virtuals", {1, 1, 1}, {64, 1, 1}, packed(ints.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (int t = 0; t < 64; ++t) EXPECT_EQ(ints[static_cast<std::size_t>(t)], t & 1 ? 2 * t : t * t);
  for (std::size_t n = 0; n < 64; ++n) in[n] = static_cast<float>(n) - 20;
  r = launch("warp_sum", {1, 1, 1}, {64, 1, 1}, packed(in.data(), out.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(out[0], 63 * 32 - 20 * 64);
  EXPECT_EQ(*static_cast<int*>(module_->address("total")), 64);
  r = launch("math", {1, 1, 1}, {64, 1, 1}, packed(in.data(), out.data(), 64));
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t n = 0; n < 64; ++n) {
    const float x = in[n];
    EXPECT_NEAR(out[n], std::fma(x, x, std::sqrt(std::fabs(x))) / (1.0f + x * x) + std::floor(x), 1e-5f);
  }
  const u64 a = 0x123456789abcdef0, b = 0xfedcba9876543210;
  r = launch("wide", {1, 1, 1}, {1, 1, 1}, packed(wide.data(), a, b));
  ASSERT_TRUE(r.ok()) << r.text;
  __extension__ using wide_int = __int128;
  const wide_int p = static_cast<wide_int>(static_cast<long long>(a)) * static_cast<long long>(b);
  EXPECT_EQ(wide[0], static_cast<long long>(p));
  EXPECT_EQ(wide[1], static_cast<long long>(p >> 64));
  EXPECT_EQ(wide[2], static_cast<long long>((a + b) / 1000000007u));
  u32 reversed = 0;
  for (u32 n = 0; n < 32; ++n) reversed |= (static_cast<u32>(a) >> n & 1) << (31 - n);
  EXPECT_EQ(wide[3], std::popcount(a) * 100 + std::countl_zero(b | 1) + static_cast<long long>(reversed));
}

}  // namespace
}  // namespace outboard::ptx
