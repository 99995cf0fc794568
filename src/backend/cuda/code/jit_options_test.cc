#include "backend/cuda/code/jit_options.hh"

#include <gtest/gtest.h>

#include <cstring>

namespace outboard::backend {
namespace {

using marshal::jit_option;

TEST(jit_arguments, logs_go_to_buffers_of_our_own) {
  const jit_option options[] = {{CU_JIT_INFO_LOG_BUFFER, 0, 100},
                                {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 0, 100},
                                {CU_JIT_MAX_REGISTERS, 0, 32}};
  jit_arguments jit;
  ASSERT_TRUE(jit.take(options));
  ASSERT_EQ(jit.count(), 3u);
  ASSERT_NE(jit.values()[0], nullptr);
  std::memcpy(jit.values()[0], "hello", 6);
  jit.values()[1] = reinterpret_cast<void*>(5);
  const marshal::jit_results results = jit.results();
  EXPECT_EQ(results.info_log, "hello");
  EXPECT_EQ(results.values, (std::vector<std::uint64_t>{0, 5, 32}));  // the address stays here
}

TEST(jit_arguments, the_size_option_alone_decides_the_buffer) {
  const jit_option options[] = {{CU_JIT_ERROR_LOG_BUFFER, 0, 1000000},
                                {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0, 8}};
  jit_arguments jit;
  ASSERT_TRUE(jit.take(options));
  std::memcpy(jit.values()[0], "12345678", 8);  // full, without a NUL
  EXPECT_EQ(jit.results().error_log, "12345678");
  const jit_option no_size[] = {{CU_JIT_ERROR_LOG_BUFFER, 0, 1000000}};
  jit_arguments none;
  ASSERT_TRUE(none.take(no_size));
  EXPECT_EQ(none.values()[0], nullptr);
}

TEST(jit_arguments, a_peer_that_breaks_the_rules_is_refused) {
  const jit_option pointer[] = {{CU_JIT_GLOBAL_SYMBOL_ADDRESSES, 0, 0x1000}};
  EXPECT_FALSE(jit_arguments().take(pointer));
  const jit_option unknown[] = {{1000, 0, 0x1000}};
  EXPECT_FALSE(jit_arguments().take(unknown));
  const jit_option negative[] = {{-1, 0, 0x1000}};
  EXPECT_FALSE(jit_arguments().take(negative));
  const jit_option huge[] = {{CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 0, 1ull << 40}};
  EXPECT_FALSE(jit_arguments().take(huge));
  EXPECT_FALSE(jit_arguments().take(std::vector<jit_option>(marshal::max_jit_options + 1)));
}

}  // namespace
}  // namespace outboard::backend
