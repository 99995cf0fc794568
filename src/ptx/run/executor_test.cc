#include "ptx/run/executor.hh"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "ptx/run/executor_testing.hh"

namespace outboard::ptx {
namespace {

using executor_test = executor_fixture;

TEST_F(executor_test, matmul_in_shared_memory) {
  load(fixture_text("matmul"));
  constexpr int n = 128;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i * 37 % 101) / 101;
    b[static_cast<std::size_t>(i)] = static_cast<float>(i * 53 % 97) / 97;
  }
  device(a), device(b), device(c);
  const auto r = launch("matmul", {n / 16, n / 16, 1}, {16, 16, 1}, packed(a.data(), b.data(), c.data(), n));
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += static_cast<double>(a[i * n + k]) * b[k * n + j];
      ASSERT_NEAR(c[i * n + j], sum, 1e-4) << i << " " << j;
    }
  }
}

TEST_F(executor_test, bitonic_sorting_network) {
  load(fixture_text("sort"));
  constexpr unsigned n = 4096;
  std::vector<unsigned> v(n);
  std::mt19937 random(7);
  for (auto& x : v) x = random();
  auto expected = v;
  std::sort(expected.begin(), expected.end());
  device(v);
  for (unsigned k = 2; k <= n; k *= 2) {
    for (unsigned j = k / 2; j > 0; j /= 2) {
      ASSERT_TRUE(launch("bitonic", {n / 256, 1, 1}, {256, 1, 1}, packed(v.data(), j, k)).ok());
    }
  }
  EXPECT_EQ(v, expected);
}

TEST_F(executor_test, bitonic_sort_of_each_block_in_shared_memory) {
  load(fixture_text("sort"));
  std::vector<unsigned> v(512 * 8);
  std::mt19937 random(8);
  for (auto& x : v) x = random() % 1000;
  auto expected = v;
  for (auto at = expected.begin(); at != expected.end(); at += 512) std::sort(at, at + 512);
  device(v);
  const auto r = launch("bitonic_block", {8, 1, 1}, {256, 1, 1}, packed(v.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(v, expected);
}

TEST_F(executor_test, odd_even_merge_sorting_network) {
  load(fixture_text("sort"));
  constexpr unsigned n = 2048;
  std::vector<float> v(n);
  std::mt19937 random(9);
  for (auto& x : v) x = static_cast<float>(random() % 100000) - 50000;
  auto expected = v;
  std::sort(expected.begin(), expected.end());
  device(v);
  for (unsigned p = 1; p < n; p *= 2) {
    for (unsigned k = p; k > 0; k /= 2) {
      ASSERT_TRUE(launch("odd_even_merge", {n / 256, 1, 1}, {256, 1, 1}, packed(v.data(), p, k, n)).ok());
    }
  }
  EXPECT_EQ(v, expected);
}

TEST_F(executor_test, calls_by_value_by_pointer_and_recursive) {
  load(fixture_text("calls"));
  std::vector<int> o(48);
  std::vector<double> d(48);
  device(o), device(d);
  const auto r = launch("calls", {1, 1, 1}, {48, 1, 1}, packed(o.data(), d.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  constexpr int fib[] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (int t = 0; t < 48; ++t) {
    const auto n = static_cast<std::size_t>(t);
    EXPECT_EQ(o[n], fib[t % 8] * 1000 + (t + t + 1) + (t & 1 ? t - 1 : t + 1) * 100000) << t;
    EXPECT_EQ(d[n], t * 0.5 * (t + 1)) << t;
  }
}

TEST_F(executor_test, local_memory_belongs_to_a_thread) {
  load(fixture_text("calls"));
  std::vector<int> o(64);
  std::iota(o.begin(), o.end(), 0);
  device(o);
  const auto r = launch("locals", {1, 1, 1}, {64, 1, 1}, packed(o.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (int t = 0; t < 64; ++t) EXPECT_EQ(o[static_cast<std::size_t>(t)], 120 * t + 7);
}

TEST_F(executor_test, device_printf) {
  load(fixture_text("calls"));
  const auto r = launch("hello", {1, 1, 1}, {2, 1, 1}, packed(42));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(printed_, "0.0 0.000 text 1099511627776 x|   42|ff\n0.1 0.500 text 1099511627776 x|   42|ff\n");
}

TEST_F(executor_test, device_assert_names_place_and_thread) {
  load(fixture_text("calls"));
  EXPECT_TRUE(launch("check", {1, 1, 1}, {8, 1, 1}, packed(8)).ok());
  const auto r = launch("check", {1, 1, 1}, {64, 1, 1}, packed(40));
  EXPECT_EQ(r.kind, outcome::assertion);
  EXPECT_NE(r.text.find("calls.cu"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("thread: [40,0,0] Assertion `threadIdx.x < n` failed."), std::string::npos) << r.text;
}

TEST_F(executor_test, reduction_with_shuffles_and_float_atomics) {
  load(fixture_text("calls"));
  std::vector<float> in(100000), out(1);
  double sum = 0;
  for (std::size_t n = 0; n < in.size(); ++n) sum += in[n] = static_cast<float>(n % 7);
  device(in), device(out);
  const auto r = launch("reduce", {20, 1, 1}, {256, 1, 1}, packed(in.data(), out.data(), 100000));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_FLOAT_EQ(out[0], static_cast<float>(sum));
}

TEST_F(executor_test, divergent_loops_reconverge) {
  load(fixture_text("calls"));
  std::vector<int> o(256);
  device(o);
  const auto r = launch("collatz", {4, 1, 1}, {64, 1, 1}, packed(o.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  for (int t = 0; t < 256; ++t) {
    int count = 0;
    for (int n = t + 1; n != 1; n = n & 1 ? 3 * n + 1 : n / 2) ++count;
    EXPECT_EQ(o[static_cast<std::size_t>(t)], count) << t;
  }
}

TEST_F(executor_test, spin_lock_within_a_warp_ends) {
  load(fixture_text("calls"));
  std::vector<int> v(2);
  device(v);
  const auto r = launch("lock", {4, 1, 1}, {64, 1, 1}, packed(v.data(), v.data() + 1));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(v[1], 256);
}

TEST_F(executor_test, blocks_that_wait_for_each_other_end) {
  load(fixture_text("calls"));
  std::vector<int> v(1);
  device(v);
  auto r = launch("spin", {64, 1, 1}, {64, 1, 1}, packed(v.data(), 64), 0, true);
  ASSERT_TRUE(r.ok()) << r.text;
  v[0] = 0;
  r = launch("spin", {40, 1, 1}, {32, 1, 1}, packed(v.data(), 40));
  ASSERT_TRUE(r.ok()) << r.text;
}

TEST_F(executor_test, cancellation_ends_an_endless_kernel) {
  load(fixture_text("calls"));
  std::vector<int> v(1);
  device(v);
  cancel_token token;
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    token.cancel();
  });
  const auto start = std::chrono::steady_clock::now();
  const auto r = launch("spin", {1000, 1, 1}, {64, 1, 1}, packed(v.data(), 1 << 30), 0, false, &token);
  EXPECT_EQ(r.kind, outcome::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));  // 150 ms on an idle machine
  timer.join();
}

TEST_F(executor_test, several_launches_share_the_workers) {
  load(fixture_text("calls"));
  std::vector<std::vector<int>> outputs(4, std::vector<int>(64 * 50));
  for (auto& o : outputs) device(o);
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  for (auto& o : outputs) {
    callers.emplace_back([&, p = o.data()] {
      for (int n = 0; n < 5; ++n) good += launch("collatz", {50, 1, 1}, {64, 1, 1}, packed(p)).ok();
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(good, 20);
  for (const auto& o : outputs) EXPECT_EQ(o, outputs[0]);
}

constexpr const char* store_text =
    ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p];\n"
    "mov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4;\n"
    "add.s64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r1;\n";

TEST_F(executor_test, a_store_behind_the_end_names_kernel_line_address_and_thread) {
  load(kernel_text(".param .u64 p", store_text));
  std::vector<std::uint32_t> v(40);
  device(v);
  const auto r = launch("k", {1, 1, 1}, {64, 1, 1}, packed(v.data()));
  EXPECT_EQ(r.kind, outcome::illegal_address);
  EXPECT_EQ(r.address, reinterpret_cast<std::uint64_t>(v.data() + 40));
  EXPECT_EQ(r.thread, (dimensions{40, 0, 0}));
  EXPECT_EQ(r.line, 12u);
  EXPECT_NE(r.text.find("kernel k"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("st.global.u32 [%rd3], %r1"), std::string::npos) << r.text;
}

TEST_F(executor_test, a_wild_address_names_the_nearest_allocation) {
  load(kernel_text(".param .u64 p", store_text));
  alignas(64) std::uint32_t v[40] = {};
  memory_.add(v, sizeof v);
  EXPECT_NE(launch("k", {1, 1, 1}, {64, 1, 1}, packed(v)).text.find("0 bytes behind allocation 0x"),
            std::string::npos);
  const auto r = launch("k", {1, 1, 1}, {1, 1, 1}, packed(reinterpret_cast<std::uint64_t>(v) - 8));
  EXPECT_NE(r.text.find("8 bytes before allocation 0x"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("of 160 bytes"), std::string::npos) << r.text;
  const auto odd = launch("k", {1, 1, 1}, {1, 1, 1}, packed(reinterpret_cast<std::uint64_t>(v) + 6));
  EXPECT_NE(odd.text.find("at offset 6 of allocation 0x"), std::string::npos) << odd.text;
}

TEST_F(executor_test, kernels_allocate_memory) {
  struct arena final : device_heap {
    std::uint64_t allocate(std::uint64_t bytes) override {
      const std::lock_guard lock(mutex);
      if (used + bytes > sizeof room) return 0;
      const auto at = reinterpret_cast<std::uint64_t>(room) + used;
      used += (bytes + 15) / 16 * 16;
      return at;
    }
    bool release(std::uint64_t address) override {
      const std::lock_guard lock(mutex);
      return released.insert(address).second && address - reinterpret_cast<std::uint64_t>(room) < used;
    }
    std::mutex mutex;
    alignas(16) char room[64 * 16];
    std::uint64_t used = 0;
    std::set<std::uint64_t> released;
  } heap;
  memory_.add(heap.room, sizeof heap.room);
  heap_ = &heap;
  const std::string calls =
      ".reg .b64 p, a, at; .reg .b32 t; .reg .pred none; ld.param.u64 p, [out]; mov.u32 t, %tid.x;\n"
      "{ .param .b64 size; .param .b64 got; st.param.b64 [size], 12; call.uni (got), malloc, (size); "
      "ld.param.b64 a, [got]; }\n"
      "setp.eq.u64 none, a, 0; @none bra DONE; st.u32 [a+8], t;\n"
      "{ .param .b64 what; st.param.b64 [what], a; call.uni free, (what); }\n"
      "DONE: mad.wide.u32 at, t, 8, p; st.global.u64 [at], a;\n";
  const std::string declared =
      ".extern .func (.param .b64 func_retval0) malloc(.param .b64 size);\n.extern .func free(.param .b64 "
      "what);\n";
  load(kernel_text(".param .u64 out", calls, declared));
  EXPECT_TRUE(module_->source().uses_heap());
  std::vector<std::uint64_t> out(65);
  device(out);
  auto r = launch("k", {1, 1, 1}, {65, 1, 1}, packed(out.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(std::set<std::uint64_t>(out.begin(), out.end()).size(), 65u);  // 64 addresses and one null
  EXPECT_EQ(std::count(out.begin(), out.end(), 0u), 1);
  heap_ = nullptr;
  r = launch("k", {1, 1, 1}, {1, 1, 1}, packed(out.data()));
  ASSERT_TRUE(r.ok()) << r.text;
  EXPECT_EQ(out[0], 0u);
  load(kernel_text(".param .u64 out",
                   ".reg .b64 p; ld.param.u64 p, [out];\n"
                   "{ .param .b64 what; st.param.b64 [what], p; call.uni free, (what); }\n",
                   declared));
  r = launch("k", {1, 1, 1}, {1, 1, 1}, packed(out.data()));
  EXPECT_EQ(r.kind, outcome::trap);
  EXPECT_NE(r.text.find("malloc did not give"), std::string::npos) << r.text;
}

TEST_F(executor_test, kernels_set_conditions_of_their_graph) {
  load(kernel_text(".param .u64 handle",
                   ".reg .b64 h; .reg .b32 t; ld.param.u64 h, [handle]; mov.u32 t, %tid.x;\n"
                   "{ .param .b64 a; .param .b32 b; st.param.b64 [a], h; st.param.b32 [b], t;\n"
                   "call.uni cudaGraphSetConditional, (a, b); }\n",
                   ".extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);\n"));
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, packed(std::uint64_t{7})).kind, outcome::illegal_instruction);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;
  set_conditional_ = [&](std::uint64_t handle, std::uint32_t value) { seen.emplace_back(handle, value); };
  ASSERT_TRUE(launch("k", {1, 1, 1}, {2, 1, 1}, packed(std::uint64_t{7})).ok());
  EXPECT_EQ(seen, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{{7, 0}, {7, 1}}));
}

TEST_F(executor_test, null_wild_misaligned_and_read_only_addresses) {
  load(kernel_text(".param .u64 p", store_text));
  std::vector<std::uint32_t> v(40);
  device(v);
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, packed(std::uint64_t{0})).kind, outcome::illegal_address);
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, packed(~std::uint64_t{7})).kind, outcome::illegal_address);
  const auto odd = reinterpret_cast<std::uint64_t>(v.data()) + 2;
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, packed(odd)).kind, outcome::misaligned_address);
  std::vector<std::uint32_t> constant(64);
  memory_.add(constant.data(), 256, false);
  EXPECT_EQ(launch("k", {1, 1, 1}, {64, 1, 1}, packed(constant.data())).kind, outcome::illegal_address);
  EXPECT_TRUE(launch("k", {1, 1, 1}, {40, 1, 1}, packed(v.data())).ok());
}

TEST_F(executor_test, requests_that_cannot_be) {
  load(kernel_text(".param .u64 p", store_text));
  std::vector<std::uint32_t> v(64);
  device(v);
  const packed good(v.data());
  EXPECT_EQ(launch("nothing", {1, 1, 1}, {1, 1, 1}, good).kind, outcome::invalid_request);
  EXPECT_EQ(launch("k", {1, 1, 1}, {2048, 1, 1}, good).kind, outcome::invalid_request);
  EXPECT_EQ(launch("k", {0, 1, 1}, {1, 1, 1}, good).kind, outcome::invalid_request);
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, packed(std::uint32_t{0})).kind, outcome::invalid_request);
  EXPECT_EQ(launch("k", {1, 1, 1}, {1, 1, 1}, good, 1u << 20).kind, outcome::invalid_request);
  EXPECT_EQ(launch("k", {100000, 1, 1}, {64, 1, 1}, good, 0, true).kind, outcome::out_of_resources);
}

TEST_F(executor_test, a_barrier_nobody_else_reaches_is_reported) {
  load(kernel_text(".param .u64 p",
                   ".reg .b32 %r<2>; .reg .pred %p1; mov.u32 %r1, %tid.x;\n"
                   "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 128;\n"));
  const auto r = launch("k", {1, 1, 1}, {64, 1, 1}, packed(std::uint64_t{0}));
  EXPECT_EQ(r.kind, outcome::deadlock);
}

TEST_F(executor_test, dynamic_shared_memory_follows_static) {
  load(kernel_text(".param .u64 p",
                   ".reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .align 4 .b8 fixed[20];\n"
                   "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;\n"
                   "mov.u32 %r3, dynamic; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1; bar.sync 0;\n"
                   "xor.b32 %r2, %r2, 12; add.u32 %r4, %r3, %r2; ld.shared.u32 %r5, [%r4];\n"
                   "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r5;\n",
                   ".extern .shared .align 16 .b8 dynamic[];"));
  std::vector<std::uint32_t> v(64);
  device(v);
  const auto r = launch("k", {1, 1, 1}, {64, 1, 1}, packed(v.data()), 256);
  ASSERT_TRUE(r.ok()) << r.text;
  for (std::uint32_t n = 0; n < 64; ++n) EXPECT_EQ(v[n], n ^ 3);
  EXPECT_EQ(launch("k", {1, 1, 1}, {64, 1, 1}, packed(v.data()), 128).kind, outcome::illegal_address);
}

}  // namespace
}  // namespace outboard::ptx
