// PTX of compilers other than nvcc, kept as text: each fixture begins with its source and command.
// there.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ptx/run/executor_testing.hh"
#include "ptx/run/plain_convert.hh"

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

TEST_F(compilers_test, nvrtc) {
  load(fixture_text("nvrtc"));
  ASSERT_TRUE(module_);
  std::vector<double> in(400), out(100);
  std::vector<int> data(96, 1);
  for (std::size_t n = 0; n < in.size(); ++n) in[n] = static_cast<double>(n % 13);
  device(in), device(out), device(data);
  auto* weights = static_cast<double*>(module_->address("weights"));
  for (int n = 0; n < 4; ++n) weights[n] = 1 << n;
  auto r = launch("dots", {2, 1, 1}, {32, 1, 1}, packed(in.data(), out.data(), 100));
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t n = 0; n < 100; ++n) {
    EXPECT_EQ(out[n], in[4 * n] + 2 * in[4 * n + 1] + 4 * in[4 * n + 2] + 8 * in[4 * n + 3]);
  }
  r = launch("scan", {1, 1, 1}, {96, 1, 1}, packed(data.data()), 128);
  ASSERT_TRUE(r.ok()) << r.text;
  for (int n = 0; n < 96; ++n) EXPECT_EQ(data[static_cast<std::size_t>(n)], n + 1);
}

/// An array as numba passes it: no owner, elements, bytes of one, data, shape, strides.
#define NUMBA_ARRAY(v) u64{0}, u64{0}, v.size(), sizeof v[0], v.data(), v.size(), sizeof v[0]

TEST_F(compilers_test, numba) {
  load(fixture_text("numba_block_sum"));
  ASSERT_TRUE(module_);
  std::vector<float> x(1000), sum(1);
  std::vector<int> counts(64 * 64);
  float wanted = 0;
  for (std::size_t n = 0; n < x.size(); ++n) wanted += x[n] = static_cast<float>(n % 10);
  device(x), device(sum), device(counts);
  auto r = launch(module_->source().kernels()[0].name, {8, 1, 1}, {128, 1, 1},
                  packed(NUMBA_ARRAY(x), NUMBA_ARRAY(sum)));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(sum[0], wanted);
  load(fixture_text("numba_mandel"));
  r = launch(module_->source().kernels()[0].name, {16, 1, 1}, {256, 1, 1},
             packed(NUMBA_ARRAY(counts), 64, 50));
  ASSERT_TRUE(r.ok()) << r.text;
  for (int i = 0; i < 64 * 64; ++i) {
    const double cr = -2.0 + 3.0 * (i % 64) / 64, ci = -1.5 + 3.0 * (i / 64) / 64;
    double zr = 0, zi = 0;
    int n = 0;
    for (; n < 50 && zr * zr + zi * zi < 4.0; ++n) {
      const double real = zr * zr - zi * zi + cr;
      zi = 2 * zr * zi + ci, zr = real;
    }
    // Fused operations may move a point across the border.
    EXPECT_NEAR(counts[static_cast<std::size_t>(i)], n, n < 40 ? 1 : 50) << i;
  }
}

TEST_F(compilers_test, triton_softmax) {
  load(fixture_text("triton_softmax"));
  ASSERT_TRUE(module_);
  constexpr int columns = 200;
  std::vector<float> x(3 * columns), out(3 * columns);
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n * 7 % 31) / 8;
  device(x), device(out);
  const auto r = launch("softmax_kernel", {3, 1, 1}, {128, 1, 1},
                        packed(x.data(), out.data(), columns, u64{0}, u64{0}), 16);
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t row = 0; row < 3; ++row) {
    const float* v = &x[row * columns];
    double sum = 0, most = -1e30;
    for (int n = 0; n < columns; ++n) most = std::max<double>(most, v[n]);
    for (int n = 0; n < columns; ++n) sum += std::exp(v[n] - most);
    for (int n = 0; n < columns; ++n) {
      EXPECT_NEAR(out[row * columns + static_cast<std::size_t>(n)], std::exp(v[n] - most) / sum, 1e-6);
    }
  }
}

TEST_F(compilers_test, triton_matmul) {
  load(fixture_text("triton_matmul"));
  ASSERT_TRUE(module_);
  constexpr int m = 64, n = 64, k = 96;
  std::vector<std::uint16_t> a(m * k), b(k * n), c(m * n);
  const auto value = [](std::size_t i) { return static_cast<int>(i * 5 % 7) - 3; };
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint16_t>(narrow_bits(value(i), {}));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint16_t>(narrow_bits(value(i * i), {}));
  device(a), device(b), device(c);
  const auto r = launch("matmul_kernel", {m / 32, n / 32, 1}, {128, 1, 1},
                        packed(a.data(), b.data(), c.data(), m, n, k, u64{0}, u64{0}), 4096);
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      int sum = 0;
      for (std::size_t x = 0; x < k; ++x) sum += value(i * k + x) * value((x * n + j) * (x * n + j));
      EXPECT_EQ(narrow_value(c[i * n + j], narrow::f16), sum) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace outboard::ptx
