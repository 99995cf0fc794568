// Video instructions, byte permutations, dot products and the rarer bit fields.
#include "ptx/run/instruction_fixture.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;
using s32 = std::int32_t;

class video_test : public instruction_test {
 protected:
  u32 one(const std::string& text, u32 a, u32 b = 0, u32 c = 0) {
    return run<u32>(text, list<u32>{a}, list<u32>{b}, list<u32>{c})[0];
  }
};

TEST_F(video_test, byte_permutations) {
  const u32 a = 0x33221100, b = 0x77665544;
  const list<u32> selectors = {0, 1, 2, 3}, as(4, a), bs(4, b);
  const auto all = [&](const std::string& mode) {
    return run<u32>("prmt.b32." + mode + " d, a, b, c;", as, bs, selectors);
  };
  EXPECT_EQ(all("f4e"), (list<u32>{0x33221100, 0x44332211, 0x55443322, 0x66554433}));
  EXPECT_EQ(all("b4e"), (list<u32>{0x55667700, 0x66770011, 0x77001122, 0x00112233}));
  EXPECT_EQ(all("rc8"), (list<u32>{0x00000000, 0x11111111, 0x22222222, 0x33333333}));
  EXPECT_EQ(all("ecl"), (list<u32>{0x33221100, 0x33221111, 0x33222222, 0x33333333}));
  EXPECT_EQ(all("ecr"), (list<u32>{0x00000000, 0x11111100, 0x22221100, 0x33221100}));
  EXPECT_EQ(all("rc16"), (list<u32>{0x11001100, 0x33223322, 0x11001100, 0x33223322}));
  EXPECT_EQ(one("prmt.b32 d, a, b, 0xf0e4;", 0x80, 0x70000000), 0x00800000u);
  EXPECT_EQ(one("prmt.b32 d, a, b, 0x8888;", 0x80), 0xffffffffu);
}

TEST_F(video_test, dot_products) {
  EXPECT_EQ(one("dp4a.u32.u32 d, a, b, c;", 0x01020304, 0x01010101, 100), 110u);
  EXPECT_EQ(static_cast<s32>(one("dp4a.s32.s32 d, a, b, c;", 0xff020304, 0x01010101, 0)), 8);
  EXPECT_EQ(static_cast<s32>(one("dp4a.s32.u32 d, a, b, c;", 0xff000000, 0xff000000, 5)), -250);
  EXPECT_EQ(static_cast<s32>(one("dp4a.u32.s32 d, a, b, c;", 0xff000000, 0xff000000, 5)), -250);
  EXPECT_EQ(one("dp2a.lo.u32.u32 d, a, b, c;", 0x00030002, 0x04030201, 10), 10u + 2 * 1 + 3 * 2);
  EXPECT_EQ(one("dp2a.hi.u32.u32 d, a, b, c;", 0x00030002, 0x04030201, 10), 10u + 2 * 3 + 3 * 4);
  EXPECT_EQ(static_cast<s32>(one("dp2a.lo.s32.s32 d, a, b, c;", 0xffff0002, 0x0000ff03, 0)), 6 + 1);
}

TEST_F(video_test, bit_fields) {
  EXPECT_EQ(one("szext.clamp.s32 d, a, b;", 0xf8, 4), 0xfffffff8u);
  EXPECT_EQ(one("szext.clamp.u32 d, a, b;", 0xf8, 4), 8u);
  EXPECT_EQ(one("szext.clamp.s32 d, a, b;", 0x80000001, 40), 0x80000001u);
  EXPECT_EQ(one("szext.wrap.s32 d, a, b;", 0x80000001, 33), 0xffffffffu);
  EXPECT_EQ(one("szext.wrap.s32 d, a, b;", 0x80000001, 32), 0u);
  EXPECT_EQ(one("bmsk.clamp.b32 d, a, b;", 4, 8), 0xff0u);
  EXPECT_EQ(one("bmsk.clamp.b32 d, a, b;", 28, 8), 0xf0000000u);
  EXPECT_EQ(one("bmsk.wrap.b32 d, a, b;", 36, 40), 0xff0u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 0, 1), 1u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 0, 3), 4u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 0, 4), ~0u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 4, static_cast<u32>(-2)), 2u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 2, 0), 2u);
  EXPECT_EQ(one("fns.b32 d, a, b, c;", 0b10110, 3, 0), ~0u);
  EXPECT_EQ(one("lop3.or.b32 d|p, a, b, c, 0x80, 0; selp.b32 d, 7, 9, p;", 6, 5, 4), 7u);
  EXPECT_EQ(one("lop3.and.b32 d|p, a, b, c, 0x80, 1; selp.b32 d, 7, 9, p;", 6, 1, 4), 9u);
  EXPECT_EQ(one("mad24.hi.u32 d, a, b, c;", 0xffffff, 0xffffff, 1), 0xfffffe00u + 1);
  EXPECT_EQ(one("mad24.hi.sat.s32 d, a, b, c;", 0x7fffff, 0x7fffff, 0x7fffffff), 0x7fffffffu);
}

TEST_F(video_test, scalar_video) {
  EXPECT_EQ(one("vadd.u32.u32.u32 d, a.b1, b.h1;", 0x1234, 0x00050000), 0x17u);
  EXPECT_EQ(static_cast<s32>(one("vsub.s32.u32.u32 d, a, b;", 1, 3)), -2);
  EXPECT_EQ(one("vsub.u32.u32.u32.sat d, a, b;", 1, 3), 0u);
  EXPECT_EQ(one("vadd.s32.s32.s32.sat d, a, b;", 0x7fffffff, 1), 0x7fffffffu);
  EXPECT_EQ(one("vabsdiff.u32.s32.s32 d, a.b0, b.b0;", 0x80, 0x7f), 255u);
  EXPECT_EQ(one("vabsdiff.u32.u32.u32.add d, a, b, c;", 3, 10, 100), 107u);
  EXPECT_EQ(one("vmax.s32.s32.s32.min d, a, b, c;", static_cast<u32>(-3), 2, 1), 1u);
  EXPECT_EQ(one("vadd.u32.u32.u32.sat d.b2, a, b, c;", 200, 100, 0x11223344), 0x11ff3344u);
  EXPECT_EQ(one("vadd.u32.u32.u32 d.h0, a, b, c;", 0xffff, 2, 0x11223344), 0x11220001u);
  EXPECT_EQ(one("vshl.u32.u32.u32.wrap d, a, b;", 1, 33), 2u);
  EXPECT_EQ(one("vshl.u32.u32.u32.clamp d, a, b;", 1, 33), 0u);
  EXPECT_EQ(one("vshr.s32.s32.u32.clamp d, a, b;", 0x80000000, 99), ~0u);
  EXPECT_EQ(one("vmad.s32.s32.s32.shr7 d, a.h0, b.h0, c;", 0xfffe, 256, 128), static_cast<u32>(-3));
  EXPECT_EQ(one("vmad.s32.s32.s32 d, a, -b, c;", 3, 4, 2), static_cast<u32>(-10));
  EXPECT_EQ(one("vmad.u32.u32.u32.sat d, a, b, c;", ~0u, ~0u, ~0u), ~0u);
  EXPECT_EQ(one("vset.s32.u32.lt d, a, b;", static_cast<u32>(-1), 0), 1u);
  EXPECT_EQ(one("vset.u32.u32.ge.add d, a, b, c;", 5, 5, 41), 42u);
}

TEST_F(video_test, simd_video) {
  EXPECT_EQ(one("vabsdiff4.u32.u32.u32.add d, a, b, c;", 0x01ff0380, 0x0201007f, 10), 10u + 1 + 254 + 3 + 1);
  EXPECT_EQ(one("vadd4.u32.u32.u32.sat d, a, b, c;", 0xff010203, 0x01010101), 0xff020304u);
  EXPECT_EQ(one("vadd4.s32.s32.s32.sat d, a, b, c;", 0x7f80ff00, 0x01ff0101), 0x7f800001u);
  EXPECT_EQ(one("vsub4.u32.u32.u32 d.b20, a, b, c;", 0x05050505, 0x01020304, 0xaabbccdd), 0xaa03cc01u);
  EXPECT_EQ(one("vadd2.u32.u32.u32 d, a.h01, b, c;", 0x00020001, 0x00200010), 0x00210012u);
  EXPECT_EQ(one("vadd2.u32.u32.u32 d, a, b.h10, c;", 0x00020001, 0x00200010), 0x00040002u);
  EXPECT_EQ(one("vavrg4.u32.u32.u32 d, a, b, c;", 0x01020304, 0x02020202), 0x02020303u);
  EXPECT_EQ(one("vavrg2.s32.s32.s32 d, a, b, c;", 0xfffd0003, 0x00000000), 0xfffe0002u);
  EXPECT_EQ(one("vmin4.s32.s32.s32 d, a, b, c;", 0x80010203, 0x01ff0101), 0x80ff0101u);
  EXPECT_EQ(one("vmax2.u32.u32.u32 d, a, b, c;", 0x80010203, 0x01ff0301), 0x80010301u);
  EXPECT_EQ(one("vset4.u32.u32.lt d, a, b, c;", 0x01020304, 0x02020202), 0x01000000u);
  EXPECT_EQ(one("vset4.u32.u32.ne.add d, a, b, c;", 0x01020304, 0x02020202, 0), 3u);
}

TEST_F(video_test, halfword_pairs) {
  EXPECT_EQ(one("add.u16x2 d, a, b;", 0xffff0001, 0x00020003), 0x00010004u);
  EXPECT_EQ(one("min.s16x2 d, a, b;", 0xffff0001, 0x00020003), 0xffff0001u);
  EXPECT_EQ(one("min.u16x2 d, a, b;", 0xffff0001, 0x00020003), 0x00020001u);
  EXPECT_EQ(one("max.relu.s16x2 d, a, b;", 0xfffff001, 0xfffef002), 0u);
}

TEST_F(video_test, what_is_no_instruction_is_refused) {
  const auto body = [&](const std::string& text) {
    return refusal(kernel_text("", ".reg .b32 a, b, c, d;\n" + text));
  };
  EXPECT_EQ(body("vadd.u32.u32.u32 d, a.b1, b;"), "");
  EXPECT_NE(body("vadd.u32.u32.u32 d, a.b4, b;").find("line 8"), std::string::npos);
  EXPECT_NE(body("add.u32 d, a.b1, b;"), "");
  EXPECT_NE(body("vadd4.u32.u32.u32 d, a, b;"), "");
  EXPECT_NE(body("vadd4.u32.u32.f32 d, a, b, c;"), "");
  EXPECT_NE(body("szext.u32 d, a, b;"), "");
}

TEST_F(video_test, a_refusal_names_every_instruction) {
  const auto text =
      refusal(kernel_text("", ".reg .b32 a;\nwgmma.fence.sync.aligned;\nadd.u32 a, a, 1;\nfoo.b32 a;"));
  EXPECT_NE(text.find("line 8: function k: the cpu device has no wgmma"), std::string::npos) << text;
  EXPECT_NE(text.find("line 10: function k: unsupported instruction foo"), std::string::npos) << text;
}

}  // namespace
}  // namespace outboard::ptx
