// Conversions to and from narrow floating-point formats, and halves in their rarer forms.
#include <cmath>
#include <limits>

#include "ptx/run/instruction_fixture.hh"
#include "ptx/run/plain_convert.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

class narrow_test : public instruction_test {};

TEST_F(narrow_test, every_value_of_a_format_survives) {
  for (const narrow n : {narrow::f16, narrow::bf16, narrow::e4m3, narrow::e5m2, narrow::e2m3, narrow::e2m1}) {
    narrow_form form;
    form.to = n;
    const u32 size = n <= narrow::bf16   ? 0x10000
                     : n <= narrow::e5m2 ? 0x100
                     : n == narrow::e2m1 ? 0x10
                                         : 0x40;
    for (u32 bits = 0; bits < size; ++bits) {
      const double v = narrow_value(bits, n);
      if (std::isnan(v)) continue;
      ASSERT_EQ(narrow_bits(v, form), bits) << static_cast<int>(n) << " " << v;
    }
  }
}

TEST_F(narrow_test, eight_bits) {
  const list<float> a = {1, 448, 464, 465, -1e9f, infinity, not_a_number, 0x1p-9f, 0x1p-10f, 1.0625f};
  const auto low = [&](const std::string& text) {
    auto d = run<u32>(text + " cvt.u32.u16 d, h0;", a, list<float>(a.size(), 0));
    for (auto& v : d) v >>= 8;
    return d;
  };
  EXPECT_EQ(low("cvt.rn.satfinite.e4m3x2.f32 h0, a, b;"),
            (list<u32>{0x38, 0x7e, 0x7e, 0x7e, 0xfe, 0x7e, 0x7f, 0x01, 0x00, 0x38}));
  EXPECT_EQ(low("cvt.rn.satfinite.relu.e4m3x2.f32 h0, a, b;")[4], 0u);
  EXPECT_EQ(low("cvt.rn.satfinite.e5m2x2.f32 h0, a, b;"),
            (list<u32>{0x3c, 0x5f, 0x5f, 0x5f, 0xfb, 0x7b, 0x7f, 0x18, 0x14, 0x3c}));
  // Order: the first source is the high byte.
  EXPECT_EQ((run<u32>("cvt.rn.satfinite.e4m3x2.f32 h0, a, b; cvt.u32.u16 d, h0;", list<float>{1},
                      list<float>{2}))[0],
            0x3840u);
  EXPECT_EQ((run<u32>("cvt.u16.u32 h0, a; cvt.rn.f16x2.e4m3x2 d, h0;", list<u32>{0x3840, 0x7f01, 0xfe00}))[0],
            0x3c004000u);
  EXPECT_EQ((run<u32>("cvt.u16.u32 h0, a; cvt.rn.f16x2.e4m3x2 d, h0;", list<u32>{0x7f01, 0xfe80})),
            (list<u32>{0x7fff1800, 0xdf008000}));
  EXPECT_EQ((run<u32>("cvt.u16.u32 h0, a; cvt.rn.f16x2.e5m2x2 d, h0;", list<u32>{0x3c7c}))[0], 0x3c007c00u);
  EXPECT_EQ((run<u32>("cvt.rn.satfinite.e5m2x2.f16x2 h0, a; cvt.u32.u16 d, h0;", list<u32>{0x3c007c00}))[0],
            0x3c7bu);
}

TEST_F(narrow_test, tf32) {
  const list<float> a = {1.0f + 0x1p-11f, 1.0f + 0x1p-11f + 0x1p-20f, 1.0f, not_a_number, infinity, -0.0f};
  EXPECT_EQ((run<u32>("cvt.rna.tf32.f32 d, a;", a)),
            (list<u32>{0x3f802000, 0x3f802000, 0x3f800000, 0x7fc00000, 0x7f800000, 0x80000000}));
  EXPECT_EQ((run<u32>("cvt.rn.tf32.f32 d, a;", a))[0], 0x3f800000u);
  EXPECT_EQ((run<u32>("cvt.rz.tf32.f32 d, a;", a))[1], 0x3f800000u);
  EXPECT_EQ((run<u32>("cvt.rn.relu.tf32.f32 d, a;", list<float>{-2}))[0], 0u);
}

TEST_F(narrow_test, brain_halves_round_once_in_every_mode) {
  const list<float> a = {1.0f + 0x1p-8f, 1.0f + 0x1p-8f + 0x1p-20f, -1.0f - 0x1p-9f};
  const auto modes = [&](const std::string& mode) {
    return run<u32>("cvt." + mode + ".bf16.f32 h0, a; cvt.u32.u16 d, h0;", a);
  };
  EXPECT_EQ(modes("rn"), (list<u32>{0x3f80, 0x3f81, 0xbf80}));
  EXPECT_EQ(modes("rz"), (list<u32>{0x3f80, 0x3f80, 0xbf80}));
  EXPECT_EQ(modes("rm"), (list<u32>{0x3f80, 0x3f80, 0xbf81}));
  EXPECT_EQ(modes("rp"), (list<u32>{0x3f81, 0x3f81, 0xbf80}));
  // 2^24 + 2^16 + 1: by way of single precision the last bit would be lost and the tie go down.
  EXPECT_EQ((run<u32>("cvt.rn.bf16.s32 h0, a; cvt.u32.u16 d, h0;", list<s32>{(1 << 24) + (1 << 16) + 1}))[0],
            0x4b81u);
  EXPECT_EQ((run<u32>("cvt.rn.bf16.s64 h0, a; cvt.u32.u16 d, h0;", list<s64>{-5}))[0], 0xc0a0u);
  EXPECT_EQ((run<u32>("cvt.rn.bf16.f64 h0, a; cvt.u32.u16 d, h0;", list<double>{1 + 0x1p-8 + 0x1p-40}))[0],
            0x3f81u);
  EXPECT_EQ((run<u32>("cvt.rz.bf16x2.f32 d, a, b;", list<float>{1.999f}, list<float>{-1.999f}))[0],
            0x3fffbfffu);
  EXPECT_EQ((run<u32>("cvt.rz.f16x2.f32 d, a, b;", list<float>{65535}, list<float>{-65535}))[0], 0x7bfffbffu);
  EXPECT_EQ((run<u32>("cvt.rn.satfinite.f16x2.f32 d, a, b;", list<float>{infinity}, list<float>{-1e9f}))[0],
            0x7bfffbffu);
}

TEST_F(narrow_test, packs_with_saturation) {
  EXPECT_EQ((run<u32>("cvt.pack.sat.u16.s32 d, a, b;", list<s32>{70000, -1}, list<s32>{-5, 7})),
            (list<u32>{0xffff0000, 0x00000007}));
  EXPECT_EQ((run<u32>("cvt.pack.sat.s8.s32.b32 d, a, b, c;", list<s32>{300}, list<s32>{-300},
                      list<u32>{0x1234}))[0],
            0x12347f80u);
  EXPECT_EQ((run<u32>("cvt.pack.sat.u4.s32.b32 d, a, b, c;", list<s32>{20}, list<s32>{3}, list<u32>{0x1}))[0],
            0x1f3u);
}

TEST_F(narrow_test, comparisons_of_pairs) {
  const list<u32> a = {0x3c004000, 0x7fff3c00}, b = {0x40003c00, 0x3c003c00};  // {1,2} {NaN,1}; {2,1} {1,1}
  EXPECT_EQ((run<u32>("set.lt.f16x2.f16x2 d, a, b;", a, b)), (list<u32>{0x3c000000, 0}));
  EXPECT_EQ((run<u32>("set.eq.u32.f16x2 d, a, b;", a, b)), (list<u32>{0, 0x0000ffff}));
  EXPECT_EQ((run<u32>("set.neu.u32.f16x2 d, a, b;", a, b)), (list<u32>{~0u, 0xffff0000}));
  EXPECT_EQ(
      (run<u32>("setp.gt.f16x2 p|q, a, b; selp.b32 r0, 1, 0, p; selp.b32 r1, 2, 0, q; add.u32 d, r0, r1;", a,
                b)),
      (list<u32>{1, 0}));
  EXPECT_EQ((run<u32>("setp.eq.f16x2 p|q, a, a; setp.ge.and.f16x2 p|q, a, b, p;"
                      "selp.b32 r0, 1, 0, p; selp.b32 r1, 2, 0, q; add.u32 d, r0, r1;",
                      a, b)),
            (list<u32>{1, 1}));
  EXPECT_EQ((run<u32>("set.le.bf16x2.bf16x2 d, a, b;", list<u32>{0x3f804000}, list<u32>{0x40003f80}))[0],
            0x3f800000u);
}

TEST_F(narrow_test, subnormal_halves_and_magnitudes) {
  EXPECT_EQ((run<u32>("add.f16x2 d, a, b;", list<u32>{0x00010001}, list<u32>{0x00010000}))[0], 0x00020001u);
  EXPECT_EQ((run<u32>("add.ftz.f16x2 d, a, b;", list<u32>{0x00010001}, list<u32>{0x00013c00}))[0],
            0x00003c00u);
  EXPECT_EQ((run<u32>("mul.ftz.f16x2 d, a, b;", list<u32>{0x04003c00}, list<u32>{0x38003c00}))[0],
            0x00003c00u);
  EXPECT_EQ((run<float>("min.xorsign.abs.f32 d, a, b;", list<float>{-3, 2}, list<float>{2, 5})),
            (list<float>{-2, 2}));
  EXPECT_EQ((run<float>("max.f32 d, a, b, c;", list<float>{1}, list<float>{2}, list<float>{7}))[0], 7.0f);
  EXPECT_EQ((run<u32>("max.NaN.xorsign.abs.f16x2 d, a, b;", list<u32>{0xbc003c00}, list<u32>{0x40004000}))[0],
            0xc0004000u);
}

}  // namespace
}  // namespace outboard::ptx
