#include "ptx/run/child_grids.hh"

#include <gtest/gtest.h>

#include "ptx/run/executor_testing.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;

// note(list, value): appends to a list. start(code, list, value, threads, stream): launches note with one
// block and writes the code of the launch. `ask` wraps what the runtime's device library does.
const std::string text = R"(.version 9.0
.target sm_75
.address_size 64
.extern .func (.param .b64 r) __cuda_syscall_cnpv2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
  .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cuda_syscall_cnpv2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError();
.extern .func (.param .b32 r) __cuda_syscall_cnpv2SetLastError(.param .b32 e);
.extern .func (.param .b32 r) __cuda_syscall_cnpv2StreamCreate(.param .b64 p, .param .b32 f);
.extern .func (.param .b32 r) __cuda_syscall_cnpv2StreamDestroy(.param .b64 s);

.visible .entry note(.param .u64 list, .param .u32 value) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [list]; ld.param.u32 %r1, [value];
  ld.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.u32 [%rd1], %r2;
  mad.wide.u32 %rd2, %r2, 4, %rd1; st.u32 [%rd2], %r1; ret; }

.func (.param .b32 code) ask(.param .b64 kernel, .param .b32 blocks, .param .b32 threads, .param .b64 list,
  .param .b32 value, .param .b64 stream) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
  ld.param.u64 %rd1, [kernel]; ld.param.u32 %r1, [blocks]; ld.param.u32 %r2, [threads];
  ld.param.u64 %rd2, [list]; ld.param.u32 %r3, [value]; ld.param.u64 %rd3, [stream]; mov.u32 %r4, 1; mov.u32 %r5, 0;
  { .param .b64 f; st.param.b64 [f], %rd1;
    .param .align 4 .b8 g[12]; st.param.b32 [g], %r1; st.param.b32 [g+4], %r4; st.param.b32 [g+8], %r4;
    .param .align 4 .b8 b[12]; st.param.b32 [b], %r2; st.param.b32 [b+4], %r4; st.param.b32 [b+8], %r4;
    .param .b32 s; st.param.b32 [s], %r5; .param .b64 r;
    call.uni (r), __cuda_syscall_cnpv2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %rd4, [r]; }
  setp.eq.u64 %p, %rd4, 0; @%p bra none;
  st.u64 [%rd4], %rd2; st.u32 [%rd4+8], %r3;
none:
  { .param .b64 p; st.param.b64 [p], %rd4; .param .b64 s; st.param.b64 [s], %rd3; .param .b32 r;
    call.uni (r), __cuda_syscall_cnpv2LaunchDeviceV2, (p, s); ld.param.b32 %r6, [r]; }
  st.param.b32 [code], %r6; ret; }

.visible .entry start(.param .u64 out, .param .u64 list, .param .u32 value, .param .u32 threads, .param .u64 stream) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [list]; ld.param.u32 %r1, [value]; ld.param.u32 %r2, [threads];
  ld.param.u64 %rd3, [stream]; mov.u64 %rd4, note; mov.u32 %r3, 1;
  { .param .b64 a; st.param.b64 [a], %rd4; .param .b32 b; st.param.b32 [b], %r3; .param .b32 c; st.param.b32 [c], %r2;
    .param .b64 d; st.param.b64 [d], %rd2; .param .b32 e; st.param.b32 [e], %r1; .param .b64 f; st.param.b64 [f], %rd3;
    .param .b32 r; call.uni (r), ask, (a, b, c, d, e, f); ld.param.b32 %r4, [r]; }
  st.u32 [%rd1], %r4; ret; }

.visible .entry order(.param .u64 list) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [list]; mov.u64 %rd2, note; mov.u64 %rd5, tree; mov.u32 %r1, 1;
)" + [] {
  const auto start = [](const std::string& kernel, int value, int stream) {
    return "mov.u32 %r2, " + std::to_string(value) + "; mov.u64 %rd3, " + std::to_string(stream) +
           "; { .param .b64 a; st.param.b64 [a], " + kernel +
           "; .param .b32 b; st.param.b32 [b], %r1; .param .b32 c; st.param.b32 [c], %r1;\n"
           ".param .b64 d; st.param.b64 [d], %rd1; .param .b32 e; st.param.b32 [e], %r2; .param .b64 f; "
           "st.param.b64 [f], %rd3;\n"
           ".param .b32 r; call.uni (r), ask, (a, b, c, d, e, f); ld.param.b32 %r3, [r]; }\n";
  };
  // The parent writes 5 behind its launches, and yet first of all.
  return start("%rd2", 100, 3) + start("%rd5", 2, 0) + start("%rd2", 7, 4) + start("%rd2", 8, 0) +
         "ld.u32 %r4, [%rd1]; add.u32 %r4, %r4, 1; st.u32 [%rd1], %r4; mad.wide.u32 %rd4, %r4, 4, %rd1;\n"
         "mov.u32 %r5, 5; st.u32 [%rd4], %r5; ret; }\n";
}() + R"(
// Notes its level, then launches itself twice with one less, down to 0.
.visible .entry tree(.param .u64 list, .param .u32 level) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
  ld.param.u64 %rd1, [list]; ld.param.u32 %r1, [level];
  atom.add.u32 %r2, [%rd1], 1; add.u32 %r2, %r2, 1; mad.wide.u32 %rd2, %r2, 4, %rd1; st.u32 [%rd2], %r1;
  setp.eq.u32 %p, %r1, 0; @%p bra done;
  sub.u32 %r1, %r1, 1; mov.u64 %rd3, tree; mov.u64 %rd4, 0; mov.u32 %r3, 1; mov.u32 %r4, 2;
more:
  { .param .b64 a; st.param.b64 [a], %rd3; .param .b32 b; st.param.b32 [b], %r3; .param .b32 c; st.param.b32 [c], %r3;
    .param .b64 d; st.param.b64 [d], %rd1; .param .b32 e; st.param.b32 [e], %r1; .param .b64 f; st.param.b64 [f], %rd4;
    .param .b32 r; call.uni (r), ask, (a, b, c, d, e, f); ld.param.b32 %r5, [r]; }
  sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0; @%p bra more;
done: ret; }

// Each thread keeps an error of its own; streams can be made.
.visible .entry errors(.param .u64 out) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .local .align 8 .b8 made[8];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 16, %rd1;
  { .param .b32 r; call.uni (r), __cuda_syscall_cnpv2GetLastError, (); ld.param.b32 %r2, [r]; } st.u32 [%rd1], %r2;
  { .param .b32 e; st.param.b32 [e], %r1; .param .b32 r;
    call.uni (r), __cuda_syscall_cnpv2SetLastError, (e); ld.param.b32 %r2, [r]; }
  { .param .b32 r; call.uni (r), __cuda_syscall_cnpv2GetLastError, (); ld.param.b32 %r2, [r]; } st.u32 [%rd1+4], %r2;
  mov.u64 %rd2, made; cvta.local.u64 %rd2, %rd2; mov.u32 %r3, 1;
  { .param .b64 p; st.param.b64 [p], %rd2; .param .b32 f; st.param.b32 [f], %r3; .param .b32 r;
    call.uni (r), __cuda_syscall_cnpv2StreamCreate, (p, f); ld.param.b32 %r2, [r]; } st.u32 [%rd1+8], %r2;
  ld.local.u64 %rd3, [made];
  { .param .b64 s; st.param.b64 [s], %rd3; .param .b32 r;
    call.uni (r), __cuda_syscall_cnpv2StreamDestroy, (s); ld.param.b32 %r2, [r]; } st.u32 [%rd1+12], %r2;
  ret; }
)";

class child_grids_test : public executor_fixture {
 protected:
  child_grids_test() {
    load(text);
    device(list_), device(code_);
  }
  launch_result start(u32 value, u32 threads, std::uint64_t stream) {
    return launch("start", {1, 1, 1}, {1, 1, 1}, packed(code_.data(), list_.data(), value, threads, stream));
  }
  std::vector<u32> list_ = std::vector<u32>(4096), code_ = std::vector<u32>(256);
};

TEST_F(child_grids_test, a_launch_ends_with_the_grids_of_its_kernels) {
  ASSERT_TRUE(start(42, 1, 0).ok());
  EXPECT_EQ(code_[0], 0u);
  EXPECT_EQ(list_[0], 1u);
  EXPECT_EQ(list_[1], 42u);
}

TEST_F(child_grids_test, a_stream_goes_on_when_the_grids_of_a_grid_are_done_and_the_tail_comes_last) {
  const auto r = launch("order", {1, 1, 1}, {1, 1, 1}, packed(list_.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  const std::vector<u32> expected = {11, 5, 2, 1, 0, 0, 1, 0, 0, 7, 8, 100};
  EXPECT_EQ(std::vector<u32>(list_.begin(), list_.begin() + 12), expected);
}

TEST_F(child_grids_test, every_block_may_launch) {
  const auto r = launch("tree", {50, 1, 1}, {1, 1, 1}, packed(list_.data(), u32{5}));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(list_[0], 50u * 63);
}

TEST_F(child_grids_test, what_cannot_be_launched_has_a_code) {
  ASSERT_TRUE(start(1, 2000, 0).ok());
  EXPECT_EQ(code_[0], static_cast<u32>(child_error::configuration));
  ASSERT_TRUE(start(1, 0, 0).ok());
  EXPECT_EQ(code_[0], static_cast<u32>(child_error::configuration));
  ASSERT_TRUE(start(1, 1, 77).ok());  // no stream of this name
  EXPECT_EQ(code_[0], static_cast<u32>(child_error::value));
  EXPECT_EQ(list_[0], 0u);
  const auto r = launch("tree", {1, 1, 1}, {1, 1, 1}, packed(list_.data(), u32{0}));
  EXPECT_TRUE(r.ok()) << r.text;
}

TEST_F(child_grids_test, a_fault_of_a_child_is_the_launchs) {
  std::vector<u32> gone(4);
  const auto r = launch("start", {1, 1, 1}, {1, 1, 1},
                        packed(code_.data(), gone.data(), u32{1}, u32{1}, std::uint64_t{0}));
  EXPECT_EQ(r.kind, outcome::illegal_address);
  EXPECT_NE(r.text.find("kernel note"), std::string::npos) << r.text;
}

TEST_F(child_grids_test, threads_have_errors_of_their_own) {
  const auto r = launch("errors", {1, 1, 1}, {40, 1, 1}, packed(code_.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (u32 n = 0; n < 40; ++n) {
    EXPECT_EQ(code_[4 * n], 0u);
    EXPECT_EQ(code_[4 * n + 1], n);
    EXPECT_EQ(code_[4 * n + 2], 0u);
    EXPECT_EQ(code_[4 * n + 3], 0u);
  }
}

}  // namespace
}  // namespace outboard::ptx
