"""swapb.b32 d, a: the bytes of a in the other order, as a plain step."""
TARGETS = ["ptx_test"]


def apply(copy):
    copy.after("src/ptx/decode/decode.hh", "void do_bmsk();", "  void do_swapb();\n")
    copy.before("src/ptx/decode/decode_arithmetic.cc", "void decoder::do_copysign() {", """\
void decoder::do_swapb() {
  const type t = take_type();
  count(2);
  if (t != type::b32) return fail("unsupported type");
  const auto a = source(at(1), t), d = target(at(0), t);
  plain(bits3_step(bits3::swapb), d, {a, constant(0, 4), constant(0, 4)});
}

""")
    copy.after("src/ptx/decode/decode_control.cc", '{"bmsk", &d::do_bmsk},', '      {"swapb", &d::do_swapb},\n')
    copy.after("src/ptx/run/plain_integer.hh", "mad24_hi,", "  swapb,\n")
    copy.before("src/ptx/run/plain_integer.cc", "const inst* mad24_hi(warp* w, const inst* i) {", """\
const inst* swapb(warp* w, const inst* i) {
  return three(w, i, [](u32 a, u32, u32) { return __builtin_bswap32(a); });
}

""")
    copy.replace("src/ptx/run/plain_integer.cc", "mad24_hi};", "mad24_hi,\n                                 swapb};")
    copy.before("src/ptx/run/instruction_video_test.cc", "TEST_F(video_test, bit_fields) {", """\
TEST_F(video_test, swapped_bytes) { EXPECT_EQ(one("swapb.b32 d, a;", 0x01020304), 0x04030201u); }

""")


def check(shop):
    shop.unit_tests("ptx_test", "video_test.swapped_bytes")
