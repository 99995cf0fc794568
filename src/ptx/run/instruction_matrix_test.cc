// mma, wmma, ldmatrix: matrices of small integers, whose products are exact in every type.
#include <functional>

#include "ptx/run/instruction_fixture.hh"
#include "ptx/run/plain_convert.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct matrix {
  u32 rows, columns;
  std::vector<int> v;
  matrix(u32 r, u32 c, int seed, int low, int high) : rows(r), columns(c), v(r * c) {
    u32 state = static_cast<u32>(seed) * 2654435761u + 12345;
    for (int& x : v) {
      state = state * 1664525 + 1013904223;
      x = low + static_cast<int>((state >> 16) % static_cast<u32>(high - low + 1));
    }
  }
  int& at(u32 r, u32 c) { return v[r * columns + c]; }
  int at(u32 r, u32 c) const { return v[r * columns + c]; }
};

matrix product_of(const matrix& a, const matrix& b, const matrix& c) {
  matrix d = c;
  for (u32 i = 0; i < a.rows; ++i) {
    for (u32 j = 0; j < b.columns; ++j) {
      for (u32 k = 0; k < a.columns; ++k) d.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return d;
}

u32 encoded(const std::string& kind, int v) {
  narrow_form form;
  if (kind == "f16") return narrow_bits(v, form);
  form.to = narrow::bf16;
  if (kind == "bf16") return narrow_bits(v, form);
  form.to = kind == "e4m3" ? narrow::e4m3 : narrow::e5m2;
  if (kind == "e4m3" || kind == "e5m2") return narrow_bits(v, form);
  if (kind == "tf32" || kind == "f32") return std::bit_cast<u32>(static_cast<float>(v));
  return static_cast<u32>(v);
}

u32 bits_of(const std::string& kind) {
  if (kind == "f16" || kind == "bf16") return 16;
  if (kind == "e4m3" || kind == "e5m2" || kind == "s8" || kind == "u8") return 8;
  return kind == "s4" || kind == "u4" ? 4 : kind == "b1" ? 1 : 32;
}

class matrix_test : public executor_fixture {
 protected:
  using place_of = std::function<std::pair<u32, u32>(u32 lane, u32 index)>;

  /// Registers [register][lane] of a matrix, `cells` elements each, by the ISA's formula.
  static std::vector<u32> spread(const matrix& m, const std::string& kind, u32 elements,
                                 const place_of& place) {
    const u32 bits = bits_of(kind), cells = 32 / bits;
    std::vector<u32> r(elements / cells * 32);
    for (u32 l = 0; l < 32; ++l) {
      for (u32 e = 0; e < elements; ++e) {
        const auto [row, column] = place(l, e);
        const u32 ones = bits == 32 ? ~0u : (1u << bits) - 1;
        r[e / cells * 32 + l] |= (encoded(kind, m.at(row, column)) & ones) << (e % cells * bits);
      }
    }
    return r;
  }

  /// mma.sync.aligned.SHAPE: a, b, c as in the manual (elements of a thread, and where they are).
  void check(const std::string& opcode, const std::string& kind, const std::string& sum, u32 m, u32 n, u32 k,
             const place_of& a_place, const place_of& b_place, int low, int high) {
    SCOPED_TRACE(opcode);
    const u32 cells = 32 / bits_of(kind), sums = sum == "f16" ? 2 : 1;
    const u32 a_count = m * k / 32, b_count = k * n / 32, c_count = m * n / 32;
    const place_of c_place = [&](u32 l, u32 i) {
      return std::pair{l / 4 + (i >= 2 ? 8 : 0), l % 4 * 2 + (i & 1)};
    };
    const matrix a(m, k, 1, low, high), b(k, n, 2, low, high), c(m, n, 3, -5, 5);
    auto ra = spread(a, kind, a_count, a_place), rb = spread(b, kind, b_count, b_place),
         rc = spread(c, sum, c_count, c_place);
    std::vector<u32> rd(rc.size());
    memory_.ranges.clear();
    device(ra), device(rb), device(rc), device(rd);
    const auto registers = [](const std::string& name, u32 count) {
      std::string text = "{";
      for (u32 i = 0; i < count; ++i) text += (i ? ", " : "") + name + std::to_string(i);
      return text + "}";
    };
    std::string body = ".reg .b32 t, a<8>, b<8>, c<8>, d<8>; .reg .b64 p, at;\nmov.u32 t, %tid.x;\n";
    const auto move = [&](const std::string& name, u32 count, bool store) {
      body += "ld.param.u64 p, [p" + name + "]; mad.wide.u32 at, t, 4, p;\n";
      for (u32 i = 0; i < count; ++i) {
        const auto where = "[at+" + std::to_string(i * 128) + "]", what = name + std::to_string(i);
        body += store ? "st.global.u32 " + where + ", " + what + ";\n"
                      : "ld.global.u32 " + what + ", " + where + ";\n";
      }
    };
    move("a", a_count / cells, false), move("b", b_count / cells, false), move("c", c_count / sums, false);
    body += "mma.sync.aligned." + opcode + " " + registers("d", c_count / sums) + ", " +
            registers("a", a_count / cells) + ", " + registers("b", b_count / cells) + ", " +
            registers("c", c_count / sums) + ";\n";
    move("d", c_count / sums, true);
    load(kernel_text(".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd", body));
    if (!module_) return;
    const auto r = launch("k", {1, 1, 1}, {32, 1, 1}, packed(ra.data(), rb.data(), rc.data(), rd.data()));
    ASSERT_TRUE(r.ok()) << r.text;
    EXPECT_EQ(rd, spread(product_of(a, b, c), sum, c_count, c_place));
  }
};

TEST_F(matrix_test, halves) {
  const auto a16 = [](u32 l, u32 i) {
    return std::pair{l / 4 + ((i >= 2 && i < 4) || i >= 6 ? 8 : 0), l % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  };
  const auto b16 = [](u32 l, u32 i) { return std::pair{l % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), l / 4}; };
  check("m16n8k16.row.col.f32.f16.f16.f32", "f16", "f32", 16, 8, 16, a16, b16, -3, 3);
  check("m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16", 16, 8, 16, a16, b16, -3, 3);
  check("m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", "f32", 16, 8, 16, a16, b16, -3, 3);
  check("m16n8k8.row.col.f32.f16.f16.f32", "f16", "f32", 16, 8, 8, a16, b16, -3, 3);
}

TEST_F(matrix_test, single_and_eight_bit_floats) {
  const auto a = [](u32 l, u32 i) { return std::pair{l / 4 + (i & 1) * 8, l % 4 + (i >= 2 ? 4 : 0)}; };
  const auto b = [](u32 l, u32 i) { return std::pair{l % 4 + i * 4, l / 4}; };
  check("m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", "f32", 16, 8, 4, a, b, -9, 9);
  check("m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "f32", 16, 8, 8, a, b, -9, 9);
  const auto a8 = [](u32 l, u32 i) {
    return std::pair{l / 4 + ((i >= 4 && i < 8) || i >= 12 ? 8 : 0), l % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  };
  const auto b8 = [](u32 l, u32 i) { return std::pair{l % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), l / 4}; };
  check("m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", "f32", 16, 8, 32, a8, b8, -4, 4);
  check("m16n8k32.row.col.f32.e5m2.e5m2.f32", "e5m2", "f32", 16, 8, 32, a8, b8, -4, 4);
}

TEST_F(matrix_test, integers) {
  const auto a8 = [](u32 l, u32 i) {
    return std::pair{l / 4 + ((i >= 4 && i < 8) || i >= 12 ? 8 : 0), l % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  };
  const auto b8 = [](u32 l, u32 i) { return std::pair{l % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), l / 4}; };
  check("m8n8k16.row.col.s32.s8.s8.s32", "s8", "s32", 8, 8, 16, a8, b8, -128, 127);
  check("m16n8k16.row.col.s32.s8.s8.s32", "s8", "s32", 16, 8, 16, a8, b8, -128, 127);
  check("m16n8k32.row.col.satfinite.s32.u8.u8.s32", "u8", "s32", 16, 8, 32, a8, b8, 0, 255);
  const auto a4 = [](u32 l, u32 i) {
    return std::pair{l / 4 + ((i >= 8 && i < 16) || i >= 24 ? 8 : 0),
                     l % 4 * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
  };
  const auto b4 = [](u32 l, u32 i) { return std::pair{l % 4 * 8 + (i & 7) + (i >= 8 ? 32 : 0), l / 4}; };
  check("m8n8k32.row.col.s32.s4.s4.s32", "s4", "s32", 8, 8, 32, a4, b4, -8, 7);
  check("m16n8k64.row.col.s32.u4.u4.s32", "u4", "s32", 16, 8, 64, a4, b4, 0, 15);
  const auto a1 = [](u32 l, u32 i) {
    return std::pair{l / 4 + ((i >= 32 && i < 64) || i >= 96 ? 8 : 0),
                     l % 4 * 32 + (i & 31) + (i >= 64 ? 128 : 0)};
  };
  const auto b1 = [](u32 l, u32 i) { return std::pair{l % 4 * 32 + (i & 31) + (i >= 32 ? 128 : 0), l / 4}; };
  check("m16n8k256.row.col.s32.b1.b1.s32.and.popc", "b1", "s32", 16, 8, 256, a1, b1, 0, 1);
}

TEST_F(matrix_test, doubles) {
  const matrix a(8, 4, 1, -9, 9), b(4, 8, 2, -9, 9), c(8, 8, 3, -9, 9);
  std::vector<double> va(a.v.begin(), a.v.end()), vb(b.v.begin(), b.v.end()), vc(c.v.begin(), c.v.end()),
      vd(64);
  device(va), device(vb), device(vc), device(vd);
  // a is read by rows; b at (lane % 4, lane / 4); c and d at row lane / 4, columns 2 * (lane % 4) and the
  // next.
  load(kernel_text(
      ".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd",
      ".reg .b32 t, g, q, r; .reg .b64 p; .reg .f64 a, b, c<2>, d<2>;\n"
      "mov.u32 t, %tid.x; shr.u32 g, t, 2; and.b32 q, t, 3;\n"
      "ld.param.u64 p, [pa]; mad.wide.u32 p, t, 8, p; ld.global.f64 a, [p];\n"
      "mad.lo.u32 r, q, 8, g; ld.param.u64 p, [pb]; mad.wide.u32 p, r, 8, p; ld.global.f64 b, [p];\n"
      "ld.param.u64 p, [pc]; mad.wide.u32 p, t, 16, p; ld.global.v2.f64 {c0, c1}, [p];\n"
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d0, d1}, {a}, {b}, {c0, c1};\n"
      "ld.param.u64 p, [pd]; mad.wide.u32 p, t, 16, p; st.global.v2.f64 [p], {d0, d1};\n"));
  const auto r = launch("k", {1, 1, 1}, {32, 1, 1}, packed(va.data(), vb.data(), vc.data(), vd.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  const auto d = product_of(a, b, c);
  for (std::size_t n = 0; n < 64; ++n) EXPECT_EQ(vd[n], d.v[n]) << n;
}

TEST_F(matrix_test, quad_pairs_multiply_matrices_of_their_own) {
  // Lane l: its row of a (4 halves), b = identity by quads; so d's row is a's row padded as b says.
  std::vector<u32> d(8 * 32);
  device(d);
  load(kernel_text(
      ".param .u64 pd",
      ".reg .b32 t, q, h, r, x, a<2>, b<2>; .reg .b64 p; .reg .f32 c<8>, d<8>; .reg .pred z; .reg .b16 k;\n"
      "mov.u32 t, %tid.x; and.b32 q, t, 3; mov.b32 a0, 0; mov.b32 a1, 0; mov.b32 b0, 0; mov.b32 b1, 0;\n"
      // a(row, 0) = t + 1, all other columns 0; b(0, column) = 1 for all
      "add.u32 r, t, 1; cvt.rn.f16.u32 k, r; cvt.u32.u16 a0, k;\n"
      "setp.eq.u32 z, q, 0; @z mov.b32 b0, 0x3c003c00; @z mov.b32 b1, 0x3c003c00;\n"
      "mov.f32 c0, 0f00000000;\n"
      "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 {d0, d1, d2, d3, d4, d5, d6, d7}, {a0, a1}, {b0, b1},"
      " {c0, c0, c0, c0, c0, c0, c0, c0};\n"
      "ld.param.u64 p, [pd]; mad.wide.u32 p, t, 32, p; st.global.v4.f32 [p], {d0, d1, d2, d3};\n"
      "st.global.v4.f32 [p+16], {d4, d5, d6, d7};\n"));
  const auto r = launch("k", {1, 1, 1}, {32, 1, 1}, packed(d.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  // Every column of row x of a quad pair holds the value of the lane that has row x.
  for (u32 l = 0; l < 32; ++l) {
    for (u32 i = 0; i < 8; ++i) {
      const u32 row = (l & 1) + (i & 2);  // in the quad of the lane
      const u32 owner = l / 4 * 4 + row;
      EXPECT_EQ(std::bit_cast<float>(d[l * 8 + i]), static_cast<float>(owner + 1)) << l << " " << i;
    }
  }
}

struct wmma_case {
  const char* shape;
  u32 m, n, k;
  const char *kind, *sum;
  u32 a, b, c;  // registers
  const char *a_layout, *b_layout;
};

class wmma_test : public matrix_test, public ::testing::WithParamInterface<wmma_case> {};

TEST_P(wmma_test, loads_multiplies_and_stores) {
  const auto& w = GetParam();
  const std::string kind = w.kind, sum = w.sum, shape = w.shape;
  const u32 bits = bits_of(kind), sum_bits = bits_of(sum);
  const bool tiny = bits < 8;
  const int high = kind == "b1" ? 1 : 7, low = kind == "b1" || kind[0] == 'u' ? 0 : -7;
  const matrix a(w.m, w.k, 1, low, high), b(w.k, w.n, 2, low, high), c(w.m, w.n, 3, -5, 5);
  // Rows (columns) are a little further apart than they are long.
  const auto in_memory = [&](const matrix& m, const std::string& layout, const std::string& type,
                             u32 stride) {
    const u32 width = bits_of(type), lines = layout == "row" ? m.rows : m.columns;
    std::vector<u32> words((lines * stride * width + 31) / 32);
    for (u32 i = 0; i < m.rows; ++i) {
      for (u32 j = 0; j < m.columns; ++j) {
        const u32 at = (layout == "row" ? i * stride + j : j * stride + i) * width;
        const u32 ones = width == 32 ? ~0u : (1u << width) - 1;
        words[at / 32] |= (encoded(type, m.at(i, j)) & ones) << (at % 32);
      }
    }
    return words;
  };
  const u32 pad = tiny ? 0 : 16;
  const std::string la = w.a_layout, lb = w.b_layout;
  const u32 sa = (la == "row" ? w.k : w.m) + pad, sb = (lb == "row" ? w.n : w.k) + pad, sc = w.n + 8;
  auto ma = in_memory(a, la, kind, sa), mb = in_memory(b, lb, kind, sb), mc = in_memory(c, "row", sum, sc);
  std::vector<u32> md(mc.size());
  device(ma), device(mb), device(mc), device(md);
  const auto list = [](const std::string& name, u32 count) {
    std::string text = "{";
    for (u32 i = 0; i < count; ++i) text += (i ? ", " : "") + name + std::to_string(i);
    return text + "}";
  };
  const std::string A = list("a", w.a), B = list("b", w.b), C = list("c", w.c), D = list("d", w.c);
  const auto load_of = [&](const std::string& which, const std::string& layout, const std::string& type,
                           const std::string& registers, u32 stride) {
    return "ld.param.u64 p, [p" + which + "];\nwmma.load." + which + ".sync.aligned." + layout + "." + shape +
           ".global." + type + " " + registers + ", [p], " + std::to_string(stride) + ";\n";
  };
  const bool halves = kind == "f16";
  const std::string types = halves ? "." + sum + "." + sum : "." + sum + "." + kind + "." + kind + "." + sum;
  const std::string how = kind == "b1" ? "wmma.mma.and.popc.sync.aligned." : "wmma.mma.sync.aligned.";
  load(kernel_text(".param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd",
                   ".reg .b32 a<8>, b<8>, c<8>, d<8>; .reg .b64 p;\n" + load_of("a", la, kind, A, sa) +
                       load_of("b", lb, kind, B, sb) + load_of("c", "row", sum, C, sc) + how + la + "." + lb +
                       "." + shape + types + " " + D + ", " + A + ", " + B + ", " + C +
                       ";\nld.param.u64 p, [pd];\n" + "wmma.store.d.sync.aligned.row." + shape + ".global." +
                       sum + " [p], " + D + ", " + std::to_string(sc) + ";\n"));
  ASSERT_TRUE(module_);
  const auto r = launch("k", {1, 1, 1}, {32, 1, 1}, packed(ma.data(), mb.data(), mc.data(), md.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(md, in_memory(product_of(a, b, c), "row", sum, sc)) << sum_bits;
}

INSTANTIATE_TEST_SUITE_P(
    shapes, wmma_test,
    ::testing::Values(wmma_case{"m16n16k16", 16, 16, 16, "f16", "f32", 8, 8, 8, "row", "col"},
                      wmma_case{"m16n16k16", 16, 16, 16, "f16", "f16", 8, 8, 4, "col", "row"},
                      wmma_case{"m32n8k16", 32, 8, 16, "f16", "f32", 8, 8, 8, "row", "row"},
                      wmma_case{"m8n32k16", 8, 32, 16, "f16", "f16", 8, 8, 4, "col", "col"},
                      wmma_case{"m16n16k16", 16, 16, 16, "bf16", "f32", 4, 4, 8, "row", "col"},
                      wmma_case{"m32n8k16", 32, 8, 16, "bf16", "f32", 8, 2, 8, "row", "col"},
                      wmma_case{"m8n32k16", 8, 32, 16, "bf16", "f32", 2, 8, 8, "row", "row"},
                      wmma_case{"m16n16k8", 16, 16, 8, "tf32", "f32", 4, 4, 8, "row", "col"},
                      wmma_case{"m16n16k16", 16, 16, 16, "s8", "s32", 2, 2, 8, "row", "col"},
                      wmma_case{"m32n8k16", 32, 8, 16, "u8", "s32", 4, 1, 8, "col", "row"},
                      wmma_case{"m8n32k16", 8, 32, 16, "s8", "s32", 1, 4, 8, "row", "col"},
                      wmma_case{"m8n8k32", 8, 8, 32, "s4", "s32", 1, 1, 2, "row", "col"},
                      wmma_case{"m8n8k128", 8, 8, 128, "b1", "s32", 1, 1, 2, "row", "col"}));

TEST_F(matrix_test, rows_of_matrices_by_lane) {
  std::vector<u16> in(4 * 64);
  std::vector<u32> out(8 * 32);
  for (std::size_t n = 0; n < in.size(); ++n) in[n] = static_cast<u16>(n);
  device(in), device(out);
  load(kernel_text(".param .u64 pi, .param .u64 po",
                   ".shared .align 16 .b8 s[1024]; .reg .b32 t, at, r<8>, m<4>; .reg .b64 i, o;\n"
                   "mov.u32 t, %tid.x; ld.param.u64 i, [pi]; mad.wide.u32 i, t, 16, i; shl.b32 at, t, 4;\n"
                   "mov.u32 r0, s; add.u32 at, at, r0; ld.global.v4.u32 {r0, r1, r2, r3}, [i];\n"
                   "st.shared.v4.u32 [at], {r0, r1, r2, r3}; bar.warp.sync -1;\n"
                   "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0, r1, r2, r3}, [at];\n"
                   "ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {r4}, [at];\n"
                   "movmatrix.sync.aligned.m8n8.trans.b16 r5, r4;\n"
                   "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [at], {r0, r1};\n"
                   "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r6, r7}, [at];\n"
                   "ld.param.u64 o, [po]; mad.wide.u32 o, t, 4, o;\n"
                   "st.global.u32 [o], r0; st.global.u32 [o+128], r1; st.global.u32 [o+256], r2;\n"
                   "st.global.u32 [o+384], r3; st.global.u32 [o+512], r4; st.global.u32 [o+640], r5;\n"
                   "st.global.u32 [o+768], r6; st.global.u32 [o+896], r7;\n"));
  const auto r = launch("k", {1, 1, 1}, {32, 1, 1}, packed(in.data(), out.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (u32 l = 0; l < 32; ++l) {
    const u32 g = l / 4, t = l % 4 * 2;
    const auto pair = [&](u32 low, u32 high) { return in[low] | u32{in[high]} << 16; };
    for (u32 m = 0; m < 4; ++m) EXPECT_EQ(out[m * 32 + l], pair(m * 64 + g * 8 + t, m * 64 + g * 8 + t + 1));
    const u32 transposed = pair(t * 8 + g, (t + 1) * 8 + g);
    EXPECT_EQ(out[4 * 32 + l], transposed);
    EXPECT_EQ(out[5 * 32 + l], pair(g * 8 + t, g * 8 + t + 1));
    EXPECT_EQ(out[6 * 32 + l], transposed);
    EXPECT_EQ(out[7 * 32 + l], pair(64 + t * 8 + g, 64 + (t + 1) * 8 + g));
  }
}

TEST_F(matrix_test, unknown_shapes_are_refused) {
  const auto body = [&](const std::string& text) {
    return refusal(kernel_text("", ".reg .b32 a<8>, b<8>, c<8>; .reg .b64 p;\n" + text));
  };
  EXPECT_NE(body("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, "
                 "{c0,c1,c2,c3};"),
            "");
  EXPECT_NE(body("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {c0,c1,c2}, {a0,a1,a2,a3}, {b0,b1}, "
                 "{c0,c1,c2,c3};"),
            "");
  EXPECT_NE(body("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {c0,c1,c2,c3}, {a0,a1}, {b0,b1}, "
                 "{c0,c1,c2,c3}, a2, 0;"),
            "");
  EXPECT_NE(body("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, "
                 "{c0,c1,c2,c3};"),
            "");
  EXPECT_NE(body("wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [p], 16;"), "");
}

}  // namespace
}  // namespace outboard::ptx
