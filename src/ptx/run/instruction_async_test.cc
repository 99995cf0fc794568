// mbarrier, asynchronous copies, cluster barriers, wide and vector memory instructions, alloca.
#include "ptx/run/instruction_fixture.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

class async_test : public executor_fixture {
 protected:
  /// Kernel of `threads` threads with p = data (64-byte aligned), t = thread number, at = p + 4 * t; shared
  /// s, bar.
  std::vector<u32> run(const std::string& body, u32 threads, const std::vector<u32>& in,
                       outcome wanted = outcome::ok) {
    memory_.ranges.clear();
    std::copy(in.begin(), in.end(), data_);
    memory_.add(data_, in.size() * 4);
    load(kernel_text(
        ".param .u64 data",
        ".reg .pred q<4>; .reg .b32 t, r<8>; .reg .b64 p, at, w<8>; .reg .b128 x<4>; .reg .f32 f<8>;\n"
        ".shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;\n"
        "ld.param.u64 p, [data]; mov.u32 t, %tid.x; mad.wide.u32 at, t, 4, p;\n" +
            body));
    if (!module_) return in;
    const auto r = launch("k", {1, 1, 1}, {threads, 1, 1}, packed(data_));
    EXPECT_EQ(r.kind, wanted) << r.text;
    text_ = r.text;
    return {data_, data_ + in.size()};
  }
  alignas(64) u32 data_[128] = {};
  std::string text_;
};

TEST_F(async_test, an_mbarrier_turns_when_all_have_arrived) {
  // 64 threads arrive; each waits for the phase, then reads what its partner wrote before.
  const auto out =
      run("setp.eq.u32 q0, t, 0; mov.u32 r0, s; mov.u32 r1, bar;\n"
          "@q0 mbarrier.init.shared::cta.b64 [r1], 64; bar.sync 0;\n"
          "shl.b32 r2, t, 2; add.u32 r3, r0, r2; st.shared.u32 [r3], t;\n"
          "mbarrier.arrive.release.cta.shared::cta.b64 w0, [r1];\n"
          "WAIT: mbarrier.try_wait.shared::cta.b64 q1, [r1], w0; @!q1 bra WAIT;\n"
          "xor.b32 r2, r2, 252; add.u32 r3, r0, r2; ld.shared.u32 r4, [r3]; st.global.u32 [at], r4;\n",
          64, std::vector<u32>(64));
  for (u32 n = 0; n < 64; ++n) EXPECT_EQ(out[n], 63 - n);
}

TEST_F(async_test, parity_pending_and_drop) {
  const auto out = run(
      "mbarrier.init.shared.b64 [bar], 3;\n"
      "mbarrier.test_wait.parity.shared.b64 q0, [bar], 1; selp.u32 r0, 1, 0, q0; st.global.u32 [p], r0;\n"
      "mbarrier.test_wait.parity.shared.b64 q0, [bar], 0; selp.u32 r0, 1, 0, q0; st.global.u32 [p+4], r0;\n"
      "mbarrier.arrive.shared.b64 w0, [bar];\n"
      "mbarrier.pending_count.b64 r0, w0; st.global.u32 [p+8], r0;\n"
      "mbarrier.arrive_drop.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 w1, [bar], 1;\n"
      "mbarrier.test_wait.shared.b64 q0, [bar], w1; selp.u32 r0, 1, 0, q0; st.global.u32 [p+12], r0;\n"
      "mbarrier.arrive.noComplete.shared.b64 w2, [bar], 1;\n"
      "mbarrier.pending_count.b64 r0, w2; st.global.u32 [p+16], r0;\n"
      "mbarrier.inval.shared.b64 [bar];\n",
      1, std::vector<u32>(5));
  EXPECT_EQ(out, (std::vector<u32>{1, 0, 3, 1, 2}));
}

TEST_F(async_test, transactions_hold_a_phase_open) {
  std::vector<u32> data(12);
  for (u32 n = 0; n < 12; ++n) data[n] = n;
  const auto out = run(
      "mov.u32 r1, bar; mov.u32 r2, s; mbarrier.init.shared::cta.b64 [r1], 1;\n"
      "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;\n"
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 w0, [r1], 32;\n"
      "mbarrier.test_wait.shared::cta.b64 q0, [r1], w0; selp.u32 r0, 1, 0, q0; st.global.u32 [p+32], r0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r2], [p], 32, [r1];\n"
      "mbarrier.test_wait.shared::cta.b64 q0, [r1], w0; selp.u32 r0, 1, 0, q0; st.global.u32 [p+36], r0;\n"
      "ld.shared.u32 r3, [r2+28]; st.global.u32 [p+40], r3;\n"
      "st.shared.u32 [r2+4], 77; cp.async.bulk.global.shared::cta.bulk_group [p], [r2], 16;\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n",
      1, data);
  EXPECT_EQ(out[8], 0u);
  EXPECT_EQ(out[9], 1u);
  EXPECT_EQ(out[10], 7u);
  EXPECT_EQ(out[1], 77u);
}

TEST_F(async_test, copies_fill_with_zeros) {
  std::vector<u32> data = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto out =
      run("mov.u32 r2, s; mov.u32 r3, 4; setp.eq.u32 q0, t, t;\n"
          "st.shared.v4.u32 [r2+16], {9, 9, 9, 9}; st.shared.v4.u32 [r2+32], {9, 9, 9, 9};\n"
          "cp.async.cg.shared.global.L2::128B [r2], [p], 16;\n"
          "cp.async.ca.shared.global [r2+16], [p], 8, r3;\n"
          "cp.async.ca.shared.global [r2+32], [p], 4, q0;\n"
          "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;\n"
          "ld.shared.v4.u32 {r4, r5, r6, r7}, [r2]; st.global.v4.u32 [p], {r7, r6, r5, r4};\n"
          "ld.shared.v4.u32 {r4, r5, r6, r7}, [r2+16]; st.global.v4.u32 [p+16], {r4, r5, r6, r7};\n"
          "ld.shared.u32 r4, [r2+32]; st.global.u32 [p+28], r4;\n",
          1, data);
  EXPECT_EQ(out, (std::vector<u32>{4, 3, 2, 1, 1, 0, 9, 0}));
}

TEST_F(async_test, a_copy_of_nothing_reads_nothing) {
  const auto out = run(
      "mov.u32 r2, s; mov.u32 r3, 0; mov.u64 w0, 0; st.shared.u32 [r2], 9;\n"
      "cp.async.ca.shared.global [r2], [w0], 4, r3; ld.shared.u32 r4, [r2]; st.global.u32 [p], r4;\n"
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [w0], [r2], r3; st.global.u32 [p+4], 7;\n",
      1, {1, 2});
  EXPECT_EQ(out, (std::vector<u32>{0, 7}));
}

TEST_F(async_test, a_copy_out_of_bounds_or_misaligned_is_an_error) {
  run("mov.u32 r2, s; cp.async.cg.shared.global [r2], [p+16], 16;\n", 1, std::vector<u32>(4),
      outcome::illegal_address);
  EXPECT_NE(text_.find("0 bytes behind allocation"), std::string::npos) << text_;
  EXPECT_NE(text_.find("of 16 bytes"), std::string::npos) << text_;
  run("mov.u32 r2, s; cp.async.ca.shared.global [r2+2], [p], 4;\n", 1, std::vector<u32>(4),
      outcome::misaligned_address);
  run("mov.u32 r2, s; mbarrier.init.shared.b64 [r2+4096], 1;\n", 1, std::vector<u32>(4),
      outcome::illegal_address);
  run("mbarrier.init.b64 [p], 1;\n", 1, std::vector<u32>(4), outcome::illegal_address);
}

TEST_F(async_test, bulk_reductions_and_remote_stores) {
  const auto out = run(
      "mov.u32 r1, bar; mov.u32 r2, s; mbarrier.init.shared::cta.b64 [r1], 1;\n"
      "st.shared.v4.u32 [r2], {10, 20, 30, 40};\n"
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [p], [r2], 16;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 w0, [r1], 8;\n"
      "mapa.shared::cluster.u32 r3, r2, 0; mapa.shared::cluster.u32 r4, r1, 0;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r3], 5, [r4];\n"
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r3], 6, [r4];\n"
      "mbarrier.test_wait.shared::cta.b64 q0, [r1], w0; selp.u32 r0, 1, 0, q0; st.global.u32 [p+16], r0;\n"
      "ld.shared.u32 r3, [r2]; st.global.u32 [p+20], r3;\n",
      1, {1, 2, 3, 4, 0, 0});
  EXPECT_EQ(out, (std::vector<u32>{11, 22, 33, 44, 1, 11}));
}

TEST_F(async_test, a_cluster_is_one_block) {
  const auto out =
      run("mov.u32 r0, s; shl.b32 r2, t, 2; add.u32 r3, r0, r2; st.shared.u32 [r3], t;\n"
          "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
          "xor.b32 r2, r2, 252; add.u32 r3, r0, r2; ld.shared::cluster.u32 r4, [r3];\n"
          "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
          "mov.u32 r5, %cluster_nctarank; add.u32 r4, r4, r5; mov.u32 r5, %cluster_ctarank;\n"
          "add.u32 r4, r4, r5; getctarank.shared::cluster.u32 r5, r3; add.u32 r4, r4, r5;\n"
          "st.global.u32 [at], r4;\n",
          64, std::vector<u32>(64));
  for (u32 n = 0; n < 64; ++n) EXPECT_EQ(out[n], 64 - n);
}

TEST_F(async_test, one_lane_is_elected) {
  const auto out =
      run("mov.u32 r1, 0; setp.ge.u32 q0, t, 4; @!q0 bra OUT;\n"
          "elect.sync r0|q1, 0xfffffff0; selp.u32 r1, 100, 0, q1; add.u32 r1, r1, r0;\n"
          "OUT: st.global.u32 [at], r1;\n",
          32, std::vector<u32>(32));
  EXPECT_EQ(out[3], 0u);
  EXPECT_EQ(out[4], 104u);
  EXPECT_EQ(out[31], 4u);
}

TEST_F(async_test, accesses_of_128_and_256_bits) {
  std::vector<u32> data(24);
  for (u32 n = 0; n < 24; ++n) data[n] = n;
  const auto out =
      run("ld.global.b128 x0, [p]; mov.b128 {w0, w1}, x0; mov.b128 x1, {w1, w0}; mov.b128 x2, x1;\n"
          "st.global.b128 [p+16], x2;\n"
          "ld.global.v4.u64 {w0, w1, w2, w3}, [p+32]; st.global.v4.u64 [p+64], {w3, w2, w1, w0};\n",
          1, data);
  EXPECT_EQ((std::vector<u32>(out.begin() + 4, out.begin() + 8)), (std::vector<u32>{2, 3, 0, 1}));
  EXPECT_EQ((std::vector<u32>(out.begin() + 16, out.end())),
            (std::vector<u32>{14, 15, 12, 13, 10, 11, 8, 9}));
  run("ld.global.v4.u64 {w0, w1, w2, w3}, [p+16];\n", 1, data, outcome::misaligned_address);
  const auto atomic =
      run("ld.global.b128 x0, [p]; ld.global.b128 x1, [p+16];\n"
          "atom.global.cas.b128 x2, [p], x0, x1; atom.global.cas.b128 x3, [p], x0, x2;\n"
          "st.global.b128 [p+32], x3; atom.global.exch.b128 x3, [p+16], x0;\n",
          1, data);
  EXPECT_EQ((std::vector<u32>(atomic.begin(), atomic.begin() + 12)),
            (std::vector<u32>{4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(async_test, atomics_of_vectors_halves_and_128_bits) {
  const auto out =
      run("mov.f32 f0, 0f3f800000; mov.f32 f1, 0f40000000;\n"
          "atom.global.add.v2.f32 {f2, f3}, [p], {f0, f1}; st.global.v2.f32 [p+8], {f2, f3};\n"
          "mov.b32 r0, 0x3f803f80; red.global.add.noftz.bf16x2 [p+16], r0;\n"
          "red.global.add.noftz.f16x2 [p+20], 0x3c003c00;\n"
          "red.global.max.noftz.v2.f16x2 [p+24], {r0, r0};\n",
          1, {0x3f800000, 0x3f800000, 0, 0, 0x3f803f80, 0x3c004000, 0x00004000, 0x40000000});
  EXPECT_EQ(out, (std::vector<u32>{0x40000000, 0x40400000, 0x3f800000, 0x3f800000, 0x40004000, 0x40004200,
                                   0x3f804000, 0x40003f80}));
}

TEST_F(async_test, what_a_function_allocates_is_its_own) {
  const auto out =
      run("cvt.u64.u32 w1, t; shl.b64 w1, w1, 4; add.u64 w1, w1, 16;\n"
          "stacksave.u64 w3; alloca.u64 w0, w1, 16; cvta.local.u64 w2, w0; st.u32 [w2+8], t;\n"
          "alloca.u64 w4, 32; st.local.u32 [w4], 99; ld.local.u32 r0, [w0+8]; stackrestore.u64 w3;\n"
          "st.global.u32 [at], r0;\n",
          32, std::vector<u32>(32));
  for (u32 n = 0; n < 32; ++n) EXPECT_EQ(out[n], n);
  run("mov.u64 w1, 1000000; alloca.u64 w0, w1;\n", 1, std::vector<u32>(1), outcome::illegal_address);
  EXPECT_NE(text_.find("stack overflow"), std::string::npos) << text_;
}

TEST_F(async_test, what_needs_other_hardware_is_refused_by_name) {
  const auto body = [&](const std::string& text) {
    return refusal(kernel_text("", ".reg .b32 r<4>; .reg .b64 w<4>;\n" + text));
  };
  EXPECT_NE(body("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [w0, "
                 "{r1}], [r2];"),
            "");
  EXPECT_NE(body("cp.async.ca.shared.global [r0], [w0], 12;"), "");
  EXPECT_NE(body("ld.global.v8.u16 {r0, r1, r2, r3, r0, r1, r2, r3}, [w0];"), "");
  EXPECT_EQ(body("ld.global.v8.b32 {r0, r1, r2, r3, r0, r1, r2, r3}, [w0];"), "");
  EXPECT_NE(body("mbarrier.arrive.expect_tx.shared.b64 _, [r0];"), "");
  EXPECT_NE(body("wgmma.fence.sync.aligned;").find("wgmma"), std::string::npos);
  EXPECT_EQ(body("createpolicy.fractional.L2::evict_last.b64 w0, 1.0; prefetch.global.L2 [w0]; "
                 "discard.global.L2 [w0], 128;\n"
                 "applypriority.global.L2::evict_normal [w0], 128;"),
            "");
}

}  // namespace
}  // namespace outboard::ptx
