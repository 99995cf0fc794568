#include "ptx/text/module.hh"

#include <gtest/gtest.h>

#include "ptx/run/executor_testing.hh"

namespace outboard::ptx {
namespace {

const std::string head = ".version 9.0\n.target sm_75\n.address_size 64\n";

std::string message(const std::string& text) {
  const auto m = parse(text);
  return m ? "" : m.error().message;
}

TEST(module_test, parameters_are_laid_out_as_the_compiler_does) {
  const auto m = parse(
      head +
      ".visible .entry k(.param .u8 a, .param .f64 b, .param .align 1 .b8 c[3], .param .align 16 .b8 d[16],\n"
      ".param .u16 e, .param .u64 .ptr .global .align 4 f, .param .align 4 .b8 g[12], .param .align 16 .b8 "
      "h[16],\n"
      ".param .u8 i, .param .align 1 .b8 j[1], .param .u32 k, .param .align 4 .b8 l[12])\n"
      ".maxntid 128, 2, 1\n.minnctapersm 3\n{ ret; }\n");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ((*m)->ptx_version(), 90);
  EXPECT_EQ((*m)->kernels()[0].target, 75);
  const auto* k = (*m)->find_kernel("k");
  ASSERT_TRUE(k);
  constexpr std::uint32_t offsets[] = {0, 8, 16, 32, 48, 56, 64, 80, 96, 97, 100, 104};
  ASSERT_EQ(k->parameters.size(), 12u);
  for (std::size_t n = 0; n < 12; ++n) EXPECT_EQ(k->parameters[n].offset, offsets[n]) << n;
  EXPECT_EQ(k->parameter_bytes, 116u);
  EXPECT_EQ(k->max_threads, 256u);
  EXPECT_EQ(k->min_blocks, 3u);
}

TEST(module_test, variables_and_memory_of_kernels) {
  const auto m =
      parse(head +
            ".const .align 4 .b8 coef[32];\n.visible .global .align 8 .u64 g[2] = {1, 2};\n.global .f32 s;\n"
            ".entry k() { .shared .align 8 .b8 x[100]; .local .align 16 .b8 depot[40]; ret; }\n");
  ASSERT_TRUE(m) << m.error().message;
  ASSERT_EQ((*m)->variables().size(), 3u);
  EXPECT_EQ((*m)->find_variable("coef")->space, variable_space::constant);
  EXPECT_EQ((*m)->find_variable("g")->size, 16u);
  EXPECT_FALSE((*m)->find_variable("g")->is_static);
  EXPECT_TRUE((*m)->find_variable("s")->is_static);
  const auto* k = (*m)->find_kernel("k");
  EXPECT_EQ(k->static_shared_bytes, 100u);
  EXPECT_EQ(k->local_bytes, 48u);
  EXPECT_EQ(k->constant_bytes, 32u);
}

TEST(module_test, targets_are_those_of_the_language) {
  for (const char* target : {"sm_50", "sm_90a", "sm_100f, debug"})
    EXPECT_EQ(message(".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n"), "") << target;
  for (const char* target : {"sm_999", "sm_7", "sm_90x", "sm_90ab"})
    EXPECT_NE(message(".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n"), "") << target;
}

TEST(module_test, kernels_of_linked_texts_keep_the_target_of_their_own) {
  const auto mine = parse(head + ".visible .entry k() { ret; }"),
             newer = parse(".version 9.0\n.target sm_121\n.address_size 64\n.visible .entry l() { ret; }");
  const module_ptr both[] = {*mine, *newer};
  const auto linked = link(both);
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ((*linked)->find_kernel("k")->target, 75);
  EXPECT_EQ((*linked)->find_kernel("l")->target, 121);
}

TEST(module_test, a_block_that_may_be_launched_has_registers_for_it) {
  const std::string many = ".reg .b64 %rd<4000>; ret; }\n";
  const auto m = parse(head + ".entry any() { " + many + ".entry small() .maxntid 128 { " + many +
                       ".entry limited() .maxnreg 40 { " + many);
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ((*m)->find_kernel("any")->registers, 64u);
  EXPECT_EQ((*m)->find_kernel("small")->registers, 255u);
  EXPECT_EQ((*m)->find_kernel("limited")->registers, 40u);
}

TEST(module_test, a_kernel_holds_the_shared_memory_that_it_can_reach) {
  const std::string call = "{ .reg .b32 %r<3>; call helper, (); ret; }\n";
  const auto m = parse(
      head +
      ".shared .align 4 .b8 mine[100];\n.shared .align 16 .b8 yours[40000];\n.shared .align 8 .b8 ours[24];\n"
      ".shared .b8 nobodys[5000];\n.func deeper() { .reg .b32 %r<3>; mov.u32 %r1, ours; ret; }\n"
      ".func helper() " +
      std::string("{ call deeper, (); ret; }\n") +
      ".entry one() { .reg .b32 %r<3>; mov.u32 %r1, mine; ret; }\n"
      ".entry two() { .reg .b32 %r<3>; ld.shared.u32 %r1, [yours+4]; ret; }\n.entry three() " +
      call +
      ".entry four() { .reg .b32 %r<3>; .shared .align 4 .b8 local[8]; mov.u32 %r2, mine; call helper, (); "
      "ret; }\n"
      ".entry none() { ret; }\n");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ((*m)->find_kernel("one")->static_shared_bytes, 100u);
  EXPECT_EQ((*m)->find_kernel("two")->static_shared_bytes, 40000u);
  EXPECT_EQ((*m)->find_kernel("three")->static_shared_bytes, 24u);
  EXPECT_EQ((*m)->find_kernel("four")->static_shared_bytes, 24u + 100 + 8);
  EXPECT_EQ((*m)->find_kernel("none")->static_shared_bytes, 0u);
}

TEST(module_test, errors_say_the_line) {
  EXPECT_NE(message("").find(".version"), std::string::npos);
  EXPECT_EQ(message(head + ".entry k() {\n  add.s32 %r1 %r2;\n}").substr(0, 7), "line 5:");
  EXPECT_NE(message(head + ".entry k() {\n\n bra NOWHERE;\n}").find("line 6: label NOWHERE is not defined"),
            std::string::npos);
  EXPECT_NE(message(head + ".entry k() {\n L: L: ret;\n}").find("defined twice"), std::string::npos);
  EXPECT_NE(message(head + ".entry k() { ret;").find("has no end"), std::string::npos);
  EXPECT_NE(message(head + ".entry k() .reqnctapercluster 2 { ret; }").find("reqnctapercluster"),
            std::string::npos);
  EXPECT_NE(message(head + ".global .b8 x[99999999999999];").find("up to"), std::string::npos);
  EXPECT_NE(message(head + ".global .b32 x[2] = {1,2,3};").find("too many"), std::string::npos);
  EXPECT_NE(message(head + ".entry k() { .reg .b32 %r<9999999>; }").find("up to 1048576"), std::string::npos);
  EXPECT_NE(message(head + ".version 9.0\n").find("twice"), std::string::npos);
  EXPECT_NE(message(head + "/* open").find("line 4"), std::string::npos);
}

TEST(module_test, hostile_depth_ends_in_an_error) {
  EXPECT_NE(message(head + ".entry k() {" + std::string(100000, '{')), "");
  EXPECT_NE(message(head + ".entry k() { mov.u32 " + std::string(100000, '[')), "");
  EXPECT_NE(message(head + ".global .b8 x[4] = " + std::string(100000, '{')), "");
  EXPECT_NE(message(head + ".section x " + std::string(100000, '{')), "");
}

TEST(module_test, what_tells_a_driver_nothing_is_read_over) {
  const auto good = [](const std::string& text) { return message(head + text); };
  EXPECT_EQ(good(".entry k() .reqnctapercluster 1, 1, 1 .explicitcluster .maxclusterrank 8 { ret; }"), "");
  EXPECT_EQ(good(".global .attribute(.unified(19, 95)) .b32 g;\n.common .global .b32 c;"), "");
  EXPECT_EQ(good(".func f() .noreturn { trap; }\n.alias g, f;\n.entry k() { .pragma \"nounroll\"; ret; }"),
            "");
  EXPECT_EQ(good(".section .debug_str { a: .b8 1, 2 \n .b64 a+8 }\n.file 1 \"x.cu\"\n.entry k() {\n.loc 1 2 "
                 "3, function_name a, "
                 "inlined_at 1 4 5\n ret; }"),
            "");
}

class link_test : public executor_fixture {};

TEST_F(link_test, extern_functions_and_variables_meet_their_definitions) {
  const auto user = parse(
      head +
      ".extern .func (.param .b32 r) twice(.param .b32 a);\n.extern .global .u32 shift;\n.global .u32 own = "
      "5;\n"
      ".visible .entry k(.param .u64 p) { .reg .b32 %r<5>; .reg .b64 %rd1;\n"
      "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
      "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call.uni (r), twice, (a); ld.param.b32 %r2, "
      "[r]; }\n"
      "ld.global.u32 %r3, [shift]; add.u32 %r2, %r2, %r3; ld.global.u32 %r3, [own]; add.u32 %r2, %r2, %r3;\n"
      "mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r2; ret; }\n");
  const auto maker =
      parse(head +
            ".visible .global .u32 shift = 100;\n.global .u32 own = 7;\n"
            ".visible .func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a];\n"
            "ld.global.u32 %r2, [own]; mad.lo.u32 %r1, %r1, 2, %r2; st.param.b32 [r], %r1; ret; }\n");
  ASSERT_TRUE(user) << user.error().message;
  ASSERT_TRUE(maker) << maker.error().message;
  EXPECT_NE(refusal(head +
                    ".extern .func twice(.param .b32 a); .entry k() { .param .b32 a; call twice, (a); ret; }")
                .find("twice"),
            std::string::npos);
  const module_ptr both[] = {*user, *maker};
  const auto linked = link(both);
  ASSERT_TRUE(linked) << linked.error().message;
  load(*linked);
  std::vector<std::uint32_t> v(40);
  device(v);
  const auto r = launch("k", {1, 1, 1}, {40, 1, 1}, packed(v.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::uint32_t n = 0; n < 40; ++n) EXPECT_EQ(v[n], 2 * n + 7 + 100 + 5);
}

TEST_F(link_test, shared_variables_of_kernels_and_functions_do_not_meet) {
  // The function's variable has the same place from both kernels, theirs lie behind it.
  load(
      head +
      ".shared .align 4 .u32 common;\n.shared .align 4 .u32 own;\n.shared .align 4 .u32 big[2000];\n"
      ".func put(.param .b32 v) { .reg .b32 %r<3>; ld.param.u32 %r1, [v]; st.shared.u32 [common], %r1; ret; "
      "}\n"
      ".func (.param .b32 r) get() { .reg .b32 %r<3>; ld.shared.u32 %r1, [common]; st.param.b32 [r], %r1; "
      "ret; }\n"
      ".visible .entry k(.param .u64 p) { .reg .b32 %r<6>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p];\n"
      "mov.u32 %r1, 7; st.shared.u32 [own], %r1; mov.u32 %r2, 9;\n"
      "{ .param .b32 v; st.param.b32 [v], %r2; call put, (v); } mov.u32 %r3, 1; st.shared.u32 [big+4], %r3;\n"
      "ld.shared.u32 %r4, [own]; st.global.u32 [%rd1], %r4;\n"
      "{ .param .b32 r; call (r), get, (); ld.param.b32 %r5, [r]; } st.global.u32 [%rd1+4], %r5; ret; }\n"
      ".visible .entry l(.param .u64 p) { .reg .b32 %r<6>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p];\n"
      "mov.u32 %r1, 5; st.shared.u32 [big], %r1; ld.shared.u32 %r2, [big]; st.global.u32 [%rd1], %r2; ret; "
      "}\n");
  std::vector<std::uint32_t> v(2);
  device(v);
  ASSERT_TRUE(launch("k", {1, 1, 1}, {1, 1, 1}, packed(v.data())).ok());
  EXPECT_EQ(v[0], 7u);
  EXPECT_EQ(v[1], 9u);
  EXPECT_EQ(module_->source().find_kernel("k")->static_shared_bytes, 8008u);
  EXPECT_EQ(module_->source().find_kernel("l")->static_shared_bytes, 8000u);
  ASSERT_TRUE(launch("l", {1, 1, 1}, {1, 1, 1}, packed(v.data())).ok());
  EXPECT_EQ(v[0], 5u);
}

TEST_F(link_test, two_strong_definitions_clash_and_weak_ones_yield) {
  const auto strong = parse(head + ".visible .global .u32 x = 1;"),
             again = parse(head + ".visible .global .u32 x = 2;"),
             weak = parse(head + ".weak .global .u32 x = 3;");
  const module_ptr clash[] = {*strong, *again};
  EXPECT_FALSE(link(clash));
  const module_ptr yields[] = {*weak, *strong};
  const auto linked = link(yields);
  ASSERT_TRUE(linked);
  load(*linked);
  std::uint32_t value = 0;
  std::memcpy(&value, module_->address("x"), 4);
  EXPECT_EQ(value, 1u);
}

TEST_F(link_test, initial_values_hold_numbers_and_addresses) {
  load(head +
       ".visible .global .align 4 .b8 a[8] = {1, 2, 255};\n.visible .global .u64 p[2] = {generic(a)+4, a};\n"
       ".visible .global .f32 f[2] = {0f3F800000, 2.5};\n.visible .global .s16 s[3] = {-1, 0x7fff};\n");
  const auto* a = static_cast<const unsigned char*>(module_->address("a"));
  EXPECT_EQ(a[2], 255);
  EXPECT_EQ(a[7], 0);
  const auto* p = static_cast<const std::uint64_t*>(module_->address("p"));
  EXPECT_EQ(p[0], reinterpret_cast<std::uint64_t>(a) + 4);
  EXPECT_EQ(p[1], reinterpret_cast<std::uint64_t>(a));
  const auto* f = static_cast<const float*>(module_->address("f"));
  EXPECT_EQ(f[0], 1.0f);
  EXPECT_EQ(f[1], 2.5f);
  const auto* s = static_cast<const std::int16_t*>(module_->address("s"));
  EXPECT_EQ(s[0], -1);
  EXPECT_EQ(s[1], 0x7fff);
}

TEST_F(link_test, what_no_kernel_reaches_may_miss_its_symbols) {
  const std::string library =
      head +
      ".extern .func absent();\n.visible .func unused() { call absent; ret; }\n.func used() { ret; }\n";
  EXPECT_EQ(refusal(library + ".entry k() { call used; ret; }"), "");
  EXPECT_NE(refusal(library + ".entry k() { call unused; ret; }").find("absent"), std::string::npos);
  EXPECT_NE(refusal(library + ".global .u64 table[1] = { unused };\n.entry k() { ret; }").find("absent"),
            std::string::npos);
}

TEST_F(link_test, what_is_not_supported_is_refused_with_name_and_line) {
  const auto why =
      refusal(kernel_text("", ".reg .b32 %r<9>;\nwmma.load.a.sync.aligned.m16n16k16.row.f16 {%r1}, [%r2];"));
  EXPECT_NE(why.find("line 8"), std::string::npos) << why;
  EXPECT_NE(why.find("wmma.load.a"), std::string::npos) << why;
  EXPECT_NE(refusal(kernel_text("", ".reg .b32 %r<9>; add.foo.u32 %r1, %r2, %r3;")).find(".foo"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_text("", ".reg .b32 %r<9>; add.u32 %r1, %r2;")).find("operands"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_text("", ".reg .b32 %r<9>; mov.u32 %r1, unknown;")).find("unknown"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_text(".param .u32 p", ".reg .b64 %r<9>; ld.param.u64 %r1, [p];")).find("beyond"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_text("", ".reg .b32 %r<9>; @8 mov.u32 %r1, %r2;")).find("expected a name"),
            std::string::npos);
}

}  // namespace
}  // namespace outboard::ptx
