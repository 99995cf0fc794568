// One small kernel an instruction: 32 lanes get values a, b, c and store d.
#include <bit>
#include <cmath>
#include <limits>

#include "ptx/run/instruction_fixture.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST_F(instruction_test, integer_arithmetic_wraps_and_saturates) {
  const list<s32> a = {1, -1, 0x7fffffff, std::numeric_limits<s32>::min()}, b = {2, 5, 1, -1};
  EXPECT_EQ((run<s32>("add.s32 d, a, b;", a, b)),
            (list<s32>{3, 4, std::numeric_limits<s32>::min(), 0x7fffffff}));
  EXPECT_EQ((run<s32>("add.sat.s32 d, a, b;", a, b)),
            (list<s32>{3, 4, 0x7fffffff, std::numeric_limits<s32>::min()}));
  EXPECT_EQ((run<s32>("mul.hi.s32 d, a, b;", a, b)), (list<s32>{0, -1, 0, 0}));
  EXPECT_EQ((run<s64>("mul.wide.s32 d, a, b;", a, b)), (list<s64>{2, -5, 0x7fffffff, s64{1} << 31}));
  EXPECT_EQ((run<s32>("div.s32 d, a, b;", a, b)),
            (list<s32>{0, 0, 0x7fffffff, std::numeric_limits<s32>::min()}));
  EXPECT_EQ((run<s32>("rem.s32 d, a, b;", a, b)), (list<s32>{1, -1, 0, 0}));
  EXPECT_EQ((run<s32>("mad.lo.s32 d, a, b, a;", a, b)), (list<s32>{3, -6, -2, 0}));
  EXPECT_EQ((run<s32>("abs.s32 d, a;", a)), (list<s32>{1, 1, 0x7fffffff, std::numeric_limits<s32>::min()}));
  EXPECT_EQ((run<s32>("min.s32 d, a, b;", a, b)), (list<s32>{1, -1, 1, std::numeric_limits<s32>::min()}));
  EXPECT_EQ((run<u32>("sad.u32 d, a, b, 10;", list<u32>{3, 7}, list<u32>{7, 3})), (list<u32>{14, 14}));
}

TEST_F(instruction_test, division_by_zero_does_not_end_the_process) {
  run<u32>("div.u32 d, a, b;", list<u32>{1, 2}, list<u32>{0, 1});
  run<s64>("rem.s64 d, a, b;", list<s64>{1, std::numeric_limits<s64>::min()}, list<s64>{0, -1});
}

TEST_F(instruction_test, shifts_clamp_at_the_width) {
  const list<u32> a = {0x80000001, 0x80000001, 0x80000001, 0x80000001}, b = {1, 31, 32, 1000};
  EXPECT_EQ((run<u32>("shl.b32 d, a, b;", a, b)), (list<u32>{2, 0x80000000, 0, 0}));
  EXPECT_EQ((run<u32>("shr.u32 d, a, b;", a, b)), (list<u32>{0x40000000, 1, 0, 0}));
  EXPECT_EQ((run<u32>("shr.s32 d, a, b;", a, b)), (list<u32>{0xc0000000, ~0u, ~0u, ~0u}));
  EXPECT_EQ((run<u32>("shf.l.wrap.b32 d, a, b, 8;", list<u32>{0x11223344}, list<u32>{0x55667788})),
            (list<u32>{0x66778811}));
  EXPECT_EQ((run<u32>("shf.r.clamp.b32 d, a, b, 40;", list<u32>{0x11223344}, list<u32>{0x55667788})),
            (list<u32>{0x55667788}));
}

TEST_F(instruction_test, carries_chain) {
  const list<u64> a = {0xffffffffffffffff, 5}, b = {1, 7};
  const std::string split = "mov.b64 {r0, r1}, a; mov.b64 {r2, r3}, b;\n";
  EXPECT_EQ((run<u64>(split + "add.cc.u32 r4, r0, r2; addc.u32 r5, r1, r3; mov.b64 d, {r4, r5};", a, b)),
            (list<u64>{0, 12}));
  EXPECT_EQ((run<u64>(split + "sub.cc.u32 r4, r0, r2; subc.u32 r5, r1, r3; mov.b64 d, {r4, r5};", a, b)),
            (list<u64>{0xfffffffffffffffe, static_cast<u64>(-2)}));
}

TEST_F(instruction_test, the_carry_of_a_subtraction_is_set_without_borrow) {
  const list<u32> a = {5, 7, 9}, b = {7, 7, 7};
  EXPECT_EQ((run<u32>("sub.cc.u32 r0, a, b; addc.u32 d, 0, 0;", a, b)), (list<u32>{0, 1, 1}));
  EXPECT_EQ((run<u32>("sub.cc.u32 r0, a, b; subc.u32 d, 0, 0;", a, b)), (list<u32>{~0u, 0, 0}));
}

TEST_F(instruction_test, a_product_of_128_bits_in_halves) {
  const list<u64> a = {0xffffffffffffffff, 0x123456789abcdef0}, b = {0xffffffffffffffff, 0xfedcba9876543210};
  const std::string product =
      "mov.b64 {r0, r1}, a; mov.b64 {r2, r3}, b; mul.hi.u32 r4, r0, r2;\n"
      "mad.lo.cc.u32 r4, r1, r2, r4; madc.hi.u32 r5, r1, r2, 0;\n"
      "mad.lo.cc.u32 r4, r0, r3, r4; madc.hi.cc.u32 r5, r0, r3, r5; addc.u32 r6, 0, 0;\n"
      "mad.lo.cc.u32 r5, r1, r3, r5; madc.hi.u32 r6, r1, r3, r6; mov.b64 d, {r5, r6};";
  EXPECT_EQ(run<u64>(product, a, b), (list<u64>{0xfffffffffffffffe, 0x121fa00ad77d7422}));
}

TEST_F(instruction_test, where_an_address_leads) {
  const auto space_of = [&](const std::string& address) {
    return run<u32>(
        address +
            "isspacep.global p, w0; selp.u32 r0, 1, 0, p; isspacep.shared p, w0; selp.u32 r1, 2, 0, p;\n"
            "isspacep.param p, w0; selp.u32 r2, 4, 0, p; isspacep.local p, w0; selp.u32 r3, 8, 0, p;\n"
            "add.u32 d, r0, r1; add.u32 d, d, r2; add.u32 d, d, r3;",
        list<u32>{0})[0];
  };
  EXPECT_EQ(space_of("ld.param.u64 w0, [pd];") & 2, 0u);
  EXPECT_EQ(space_of(".shared .b32 s; mov.u64 w0, s; cvta.shared.u64 w0, w0;"), 2u);
  EXPECT_EQ(space_of("mov.b64 w0, pd; cvta.param.u64 w0, w0;") & 14, 4u);
  EXPECT_EQ(space_of(".local .b32 v; mov.u64 w0, v; cvta.local.u64 w0, w0;"), 8u);
  EXPECT_EQ(run<u32>("mov.pred p, %is_explicit_cluster; selp.u32 d, 1, 0, p;", list<u32>{9})[0], 0u);
}

TEST_F(instruction_test, bits) {
  const list<u32> a = {0, 1, 0x80000000, 0x00ff0000};
  EXPECT_EQ((run<u32>("popc.b32 d, a;", a)), (list<u32>{0, 1, 1, 8}));
  EXPECT_EQ((run<u32>("clz.b32 d, a;", a)), (list<u32>{32, 31, 0, 8}));
  EXPECT_EQ((run<u32>("brev.b32 d, a;", a)), (list<u32>{0, 0x80000000, 1, 0x0000ff00}));
  EXPECT_EQ((run<u32>("bfind.u32 d, a;", a)), (list<u32>{~0u, 0, 31, 23}));
  EXPECT_EQ((run<u32>("bfe.u32 d, a, 16, 4;", a)), (list<u32>{0, 0, 0, 15}));
  EXPECT_EQ((run<u32>("bfe.s32 d, a, 20, 4;", a)), (list<u32>{0, 0, 0, ~0u}));
  EXPECT_EQ((run<u32>("bfi.b32 d, 5, a, 4, 8;", a)), (list<u32>{0x50, 0x51, 0x80000050, 0x00ff0050}));
  EXPECT_EQ((run<u32>("lop3.b32 d, a, 0xf0f0f0f0, 0x0f, 0xEA;", a)),
            (list<u32>{0xf, 0xf, 0x8000000f, 0x00f0000f}));
  EXPECT_EQ((run<u32>("prmt.b32 d, a, 0x44332211, 0x7654;", a)),
            (list<u32>{0x44332211, 0x44332211, 0x44332211, 0x44332211}));
  EXPECT_EQ((run<u32>("mov.u32 d, WARP_SZ;", a)), (list<u32>{32, 32, 32, 32}));
}

TEST_F(instruction_test, float_arithmetic_and_modes) {
  const list<float> a = {1.0f, 1e38f, -0.0f, not_a_number}, b = {0x1p-24f, 1e38f, 0.0f, 1.0f};
  EXPECT_EQ((run<float>("add.rp.f32 d, a, b;", a, b))[0], 1.0f + 0x1p-23f);
  EXPECT_EQ((run<float>("add.rn.f32 d, a, b;", a, b))[0], 1.0f);
  EXPECT_EQ((run<float>("mul.f32 d, a, b;", a, b))[1], infinity);
  EXPECT_EQ((run<float>("mul.rz.f32 d, a, b;", a, b))[1], std::numeric_limits<float>::max());
  const auto least = run<float>("min.f32 d, a, b;", a, b);
  EXPECT_TRUE(std::signbit(least[2]));
  EXPECT_EQ(least[3], 1.0f);
  EXPECT_EQ((run<float>("add.sat.f32 d, a, b;", a, b)), (list<float>{1, 1, 0, 0}));
  EXPECT_EQ((run<float>("fma.rn.f32 d, a, a, b;", list<float>{1 + 0x1p-12f}, list<float>{-1}))[0],
            0x1p-11f + 0x1p-24f);
  const float tiny = 1e-40f;
  EXPECT_EQ((run<float>("add.f32 d, a, b;", list<float>{tiny}, list<float>{0}))[0], tiny);
  EXPECT_EQ((run<float>("add.ftz.f32 d, a, b;", list<float>{tiny}, list<float>{0}))[0], 0.0f);
  EXPECT_EQ((run<double>("div.rn.f64 d, a, b;", list<double>{1}, list<double>{3}))[0], 1.0 / 3);
  EXPECT_EQ((run<float>("sqrt.rn.f32 d, a;", list<float>{2}))[0], std::sqrt(2.0f));
  EXPECT_NEAR((run<float>("ex2.approx.f32 d, a;", list<float>{3.5f}))[0], std::exp2(3.5f), 1e-5);
  EXPECT_NEAR((run<float>("sin.approx.f32 d, a;", list<float>{1}))[0], std::sin(1.0f), 1e-6);
  EXPECT_EQ((run<float>("copysign.f32 d, a, b;", list<float>{-1}, list<float>{3}))[0], -3.0f);
}

TEST_F(instruction_test, comparisons_with_nan) {
  const list<float> a = {1, 2, not_a_number, 1}, b = {2, 1, 1, not_a_number};
  const std::string tail = " selp.b32 d, 1, 0, p;";
  EXPECT_EQ((run<u32>("setp.lt.f32 p, a, b;" + tail, a, b)), (list<u32>{1, 0, 0, 0}));
  EXPECT_EQ((run<u32>("setp.ltu.f32 p, a, b;" + tail, a, b)), (list<u32>{1, 0, 1, 1}));
  EXPECT_EQ((run<u32>("setp.ne.f32 p, a, a;" + tail, a)), (list<u32>{0, 0, 0, 0}));
  EXPECT_EQ((run<u32>("setp.neu.f32 p, a, a;" + tail, a)), (list<u32>{0, 0, 1, 0}));
  EXPECT_EQ((run<u32>("setp.num.f32 p, a, b;" + tail, a, b)), (list<u32>{1, 1, 0, 0}));
  EXPECT_EQ((run<u32>("setp.gt.f32 q, a, 0f00000000; setp.lt.and.f32 p|q, a, b, !q;" + tail, a, b)),
            (list<u32>{0, 0, 0, 0}));
  EXPECT_EQ((run<u32>("set.lt.u32.f32 d, a, b;", a, b)), (list<u32>{~0u, 0, 0, 0}));
  EXPECT_EQ((run<u32>("setp.lo.u32 p, a, b;" + tail, list<u32>{1, ~0u}, list<u32>{2, 1})), (list<u32>{1, 0}));
}

TEST_F(instruction_test, conversions_round_and_saturate) {
  const list<float> a = {1.5f, -1.5f, 3e9f, -3e9f, not_a_number, infinity, 2.5f};
  constexpr s32 low = std::numeric_limits<s32>::min(), high = std::numeric_limits<s32>::max();
  EXPECT_EQ((run<s32>("cvt.rzi.s32.f32 d, a;", a)), (list<s32>{1, -1, high, low, 0, high, 2}));
  EXPECT_EQ((run<s32>("cvt.rni.s32.f32 d, a;", a)), (list<s32>{2, -2, high, low, 0, high, 2}));
  EXPECT_EQ((run<s32>("cvt.rmi.s32.f32 d, a;", a)), (list<s32>{1, -2, high, low, 0, high, 2}));
  EXPECT_EQ((run<u32>("cvt.rzi.u32.f32 d, a;", a)), (list<u32>{1, 0, 3000000000u, 0, 0, ~0u, 2}));
  EXPECT_EQ((run<float>("cvt.rpi.f32.f32 d, a;", list<float>{1.2f, -1.2f})), (list<float>{2, -1}));
  EXPECT_EQ((run<float>("cvt.sat.f32.f32 d, a;", list<float>{1.2f, -1.2f, 0.5f, not_a_number})),
            (list<float>{1, 0, 0.5f, 0}));
  EXPECT_EQ((run<float>("cvt.rz.f32.f64 d, a;", list<double>{1 + 0x1p-24 + 0x1p-30}))[0], 1.0f);
  EXPECT_EQ((run<float>("cvt.rn.f32.f64 d, a;", list<double>{1 + 0x1p-24 + 0x1p-30}))[0], 1.0f + 0x1p-23f);
  EXPECT_EQ((run<s32>("cvt.s32.s8 d, a;", list<u32>{0x1ff, 0x7f})), (list<s32>{-1, 127}));
  EXPECT_EQ((run<s32>("cvt.sat.s8.s32 r0, a; mov.b32 d, r0;", list<s32>{300, -300, 5})),
            (list<s32>{127, -128, 5}));
  EXPECT_EQ((run<u64>("cvt.u64.u32 d, a;", list<u32>{~0u})), (list<u64>{0xffffffff}));
  EXPECT_EQ((run<s64>("cvt.s64.s32 d, a;", list<s32>{-5})), (list<s64>{-5}));
  EXPECT_EQ((run<float>("cvt.rn.f32.u64 d, a;", list<u64>{1ull << 63})), (list<float>{0x1p63f}));
}

TEST_F(instruction_test, halves_survive_all_values_and_round_once) {
  // Every half to float and back, 32 at a time would take long: a sample of each exponent with both signs.
  list<u32> a;
  for (u32 h = 0; h < 0x8000 && a.size() < 1024; h += 37) a.push_back(h);
  for (const u32 h : a) ASSERT_LT(h, 0x8000u);
  for (std::size_t at = 0; at + 32 <= a.size(); at += 32) {
    const list<u32> part(a.begin() + static_cast<std::ptrdiff_t>(at),
                         a.begin() + static_cast<std::ptrdiff_t>(at) + 32);
    const auto back =
        run<u32>("cvt.u16.u32 h0, a; cvt.f32.f16 r0, h0; cvt.rn.f16.f32 h1, r0; cvt.u32.u16 d, h1;", part);
    for (std::size_t n = 0; n < 32; ++n) {
      const bool nan = (part[n] & 0x7fff) > 0x7c00;
      EXPECT_EQ(back[n], nan ? 0x7fffu : part[n]);
    }
    if (at > 96) at += 160;
  }
  const std::string down = "cvt.rn.f16.f32 h0, a; cvt.u32.u16 d, h0;";
  EXPECT_EQ((run<u32>(down, list<float>{1, 65519.0f, 65520.0f, 1 + 0x1p-11f, 1 + 0x1.8p-10f, 0x1p-24f,
                                        0x1p-25f, -2})),
            (list<u32>{0x3c00, 0x7bff, 0x7c00, 0x3c00, 0x3c02, 1, 0, 0xc000}));
  EXPECT_EQ((run<u32>("fma.rn.f16x2 d, a, b, b;", list<u32>{0x40003c00}, list<u32>{0x3c004000})),
            (list<u32>{0x42004400}));
  EXPECT_EQ((run<u32>("cvt.rn.bf16x2.f32 d, a, 0f3F800000;", list<float>{2})), (list<u32>{0x40003f80}));
}

TEST_F(instruction_test, guards_write_only_where_they_hold) {
  const list<u32> a = {0, 1, 2, 3};
  EXPECT_EQ((run<u32>("mov.u32 d, 9; setp.gt.u32 p, a, 1; @p add.u32 d, a, 100; @!p sub.u32 d, a, 1;", a)),
            (list<u32>{~0u, 0, 102, 103}));
  EXPECT_EQ((run<u32>("mov.u32 d, 1; setp.gt.u32 p, a, 1; @p bra L; mov.u32 d, 2; bra M; L: add.u32 d, d, 5; "
                      "M: add.u32 d, d, 1;",
                      a)),
            (list<u32>{3, 3, 7, 7}));
  EXPECT_EQ((run<u32>("mov.u32 d, 0; T: .branchtargets A, B, C; min.u32 r0, a, 2; brx.idx r0, T; A: mov.u32 "
                      "d, 10; bra E; B: mov.u32 d, 20; bra E; C: mov.u32 d, 30; E:",
                      a)),
            (list<u32>{10, 20, 30, 30}));
}

TEST_F(instruction_test, vectors_and_small_elements) {
  const list<u64> a = {0x8877665544332211, 0xffeeddccbbaa9988};
  const std::string own = "ld.param.u64 at, [pa]; mad.wide.u32 at, t, 8, at;\n";
  EXPECT_EQ((run<u32>(own + "ld.global.v2.u32 {r0, r1}, [at]; sub.u32 d, r1, r0;", a)),
            (list<u32>{0x44444444, 0x44444444}));
  EXPECT_EQ((run<u32>(own + "ld.global.v4.u16 {h0, h1, h2, h3}, [at]; mov.b32 d, {h3, h0};", a)),
            (list<u32>{0x22118877, 0x9988ffee}));
  EXPECT_EQ((run<s32>(own + "ld.global.s8 d, [at+7];", a)), (list<s32>{static_cast<s32>(0xffffff88), -1}));
  EXPECT_EQ((run<s32>(own + "ld.global.u8 h0, [at+7]; cvt.u32.u16 d, h0;", a)), (list<s32>{0x88, 0xff}));
  EXPECT_EQ(
      (run<u64>(
          own + "mov.b64 {r0, r1}, 0x100000002; st.global.v2.b32 [at], {r1, r0}; ld.global.b64 d, [at];", a)),
      (list<u64>{0x200000001, 0x200000001}));
}

TEST_F(instruction_test, atomics_return_the_old_value) {
  const std::string cell = "ld.param.u64 at, [pc];\n";
  const list<u32> a(32, 1);
  auto old = run<u32>(cell + "atom.global.add.u32 d, [at], a;", a, list<u32>{}, list<u32>{100});
  std::sort(old.begin(), old.end());
  for (u32 n = 0; n < 32; ++n) EXPECT_EQ(old[n], 100 + n);
  EXPECT_EQ((run<u32>(cell + "atom.global.cas.b32 r0, [at], 7, 9; ld.global.u32 d, [at];", list<u32>{0},
                      list<u32>{}, list<u32>{7})),
            list<u32>{9});
  EXPECT_EQ((run<u32>(cell + "atom.global.inc.u32 r0, [at], 7; ld.global.u32 d, [at];", list<u32>{0},
                      list<u32>{}, list<u32>{7})),
            list<u32>{0});
  EXPECT_EQ((run<s32>(cell + "red.global.max.s32 [at], a; ld.global.u32 d, [at];", list<s32>{-3}, list<s32>{},
                      list<s32>{-7})),
            list<s32>{-3});
  EXPECT_EQ((run<double>(cell + "red.global.add.f64 [at], a; ld.global.b64 d, [at];", list<double>{1.5},
                         list<double>{}, list<double>{2})),
            list<double>{3.5});
  EXPECT_EQ((run<u32>(".shared .align 4 .b8 s[4]; st.shared.u32 [s], 5; atom.shared.exch.b32 r0, [s], a; "
                      "ld.shared.u32 r1, [s]; add.u32 d, r0, r1;",
                      list<u32>{8})),
            list<u32>{13});
}

TEST_F(instruction_test, lanes_talk) {
  list<u32> a(32);
  for (u32 n = 0; n < 32; ++n) a[n] = n * n;
  const auto each = [&](const std::string& text, auto expected) {
    const auto d = run<u32>(text, a);
    for (u32 n = 0; n < 32; ++n) EXPECT_EQ(d[n], expected(n)) << text << " lane " << n;
  };
  each("shfl.sync.idx.b32 d, a, 5, 31, -1;", [](u32) { return 25u; });
  each("shfl.sync.up.b32 d|p, a, 2, 0, -1; @!p mov.u32 d, 7;",
       [](u32 n) { return n < 2 ? 7u : (n - 2) * (n - 2); });
  each("shfl.sync.down.b32 d, a, 1, 31, -1;", [](u32 n) { return n == 31 ? n * n : (n + 1) * (n + 1); });
  each("shfl.sync.bfly.b32 d, a, 16, 31, -1;", [](u32 n) { return (n ^ 16) * (n ^ 16); });
  each("shfl.sync.down.b32 d, a, 1, 0x181f, -1;",
       [](u32 n) { return n % 8 == 7 ? n * n : (n + 1) * (n + 1); });
  each("setp.lt.u32 p, t, 4; vote.sync.ballot.b32 d, p, -1;", [](u32) { return 15u; });
  each("setp.lt.u32 p, t, 4; vote.sync.any.pred q, p, -1; selp.u32 d, 1, 0, q;", [](u32) { return 1u; });
  each("setp.lt.u32 p, t, 4; vote.sync.all.pred q, p, -1; selp.u32 d, 1, 0, q;", [](u32) { return 0u; });
  each("and.b32 r0, t, 3; match.any.sync.b32 d, r0, -1;", [](u32 n) { return 0x11111111u << (n % 4); });
  each("redux.sync.add.u32 d, a, -1;", [](u32) { return 10416u; });
  // Two tiles of 16 lanes at one instruction.
  const std::string tile = "setp.lt.u32 p, t, 16; selp.u32 r0, 0xffff, 0xffff0000, p;";
  each(tile + "redux.sync.add.u32 d, t, r0;", [](u32 n) { return n < 16 ? 120u : 376u; });
  each(tile + "setp.eq.u32 q, t, 20; vote.sync.any.pred q, q, r0; selp.u32 d, 1, 0, q;",
       [](u32 n) { return n / 16; });
  each("setp.lt.u32 p, t, 16; @p bra L; mov.u32 r0, 1; bra M; L: mov.u32 r0, 2; M: activemask.b32 d;",
       [](u32) { return ~0u; });
  // Half the lanes come later: the shuffle waits for them.
  each(
      "mov.u32 r1, a; setp.lt.u32 p, t, 16; @p bra L; add.u32 r1, r1, 1; L: shfl.sync.bfly.b32 d, r1, 16, "
      "31, -1;",
      [](u32 n) { return (n ^ 16) * (n ^ 16) + (n < 16 ? 1 : 0); });
  each("mov.u32 d, %lanemask_lt;", [](u32 n) { return (1u << n) - 1; });
}

TEST_F(instruction_test, lanes_that_ended_are_not_waited_for) {
  std::vector<u32> a(32);
  const auto d = run<u32>(
      "setp.gt.u32 p, t, 7; @p exit; mov.u32 r0, t; shfl.sync.bfly.b32 d, r0, 1, 31, -1; bar.sync 0;", a);
  for (u32 n = 0; n < 32; ++n) EXPECT_EQ(d[n], n < 8 ? n ^ 1 : 0);
}

TEST_F(instruction_test, generic_addresses_reach_every_space) {
  const list<u32> a = {3, 4};
  EXPECT_EQ((run<u32>(".shared .align 4 .b8 s[8]; mov.u64 w0, s; cvta.shared.u64 w1, w0; mad.wide.u32 w1, t, "
                      "4, w1; st.u32 [w1], a;"
                      "ld.shared.u32 r0, [s+4]; ld.u32 r1, [w1]; isspacep.shared p, w1; selp.u32 r2, 100, 0, "
                      "p; add.u32 d, r1, r2;",
                      a)),
            (list<u32>{103, 104}));
  EXPECT_EQ((run<u32>(".local .align 8 .b8 l[16]; mov.u64 w0, l; cvta.local.u64 w1, w0; st.u32 [w1+8], a; "
                      "ld.local.u32 r0, [l+8];"
                      "isspacep.local p, w1; selp.u32 d, r0, 0, p;",
                      a)),
            a);
  EXPECT_EQ((run<u64>("mov.b64 w0, pa; ld.param.u64 d, [w0+24]; ld.u64 w1, [w0]; ld.param.u64 w2, [pa]; "
                      "setp.ne.u64 p, w1, w2; @p trap; sub.u64 d, d, d;",
                      a)),
            (list<u64>{0, 0}));
}

}  // namespace
}  // namespace outboard::ptx
