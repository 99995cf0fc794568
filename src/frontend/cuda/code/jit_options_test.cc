#include "frontend/cuda/code/jit_options.hh"

#include <gtest/gtest.h>

#include <cstring>

namespace outboard::frontend::cuda {
namespace {

void* number(std::uint64_t value) { return reinterpret_cast<void*>(value); }

TEST(jit_options, none_need_no_arrays) {
  jit_options jit;
  EXPECT_EQ(jit.take(0, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(jit.travelling().empty());
  jit.deliver({});
}

TEST(jit_options, buffers_travel_as_their_size_and_come_back_filled) {
  char info[16], error[8];
  std::memset(info, 'x', sizeof info);
  std::memset(error, 'x', sizeof error);
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_MAX_REGISTERS};
  void* values[] = {info, number(sizeof info), error, number(sizeof error), number(32)};
  jit_options jit;
  ASSERT_EQ(jit.take(5, options, values), CUDA_SUCCESS);
  ASSERT_EQ(jit.travelling().size(), 5u);
  EXPECT_EQ(jit.travelling()[0].value, sizeof info);
  EXPECT_EQ(jit.travelling()[2].value, sizeof error);
  EXPECT_EQ(jit.travelling()[4].value, 32u);

  marshal::jit_results results;
  results.info_log = "fine";
  results.error_log = "longer than the buffer";
  results.values = {0, 4, 0, 7, 99};
  jit.deliver(results);
  EXPECT_STREQ(info, "fine");
  EXPECT_STREQ(error, "longer ");  // seven characters and the NUL
  EXPECT_EQ(values[0], info);      // no output
  EXPECT_EQ(values[1], number(4));
  EXPECT_EQ(values[3], number(7));
  EXPECT_EQ(values[4], number(32));
}

TEST(jit_options, a_buffer_without_a_size_gets_nothing) {
  char info[4] = "abc";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER};
  void* values[] = {info};
  jit_options jit;
  ASSERT_EQ(jit.take(1, options, values), CUDA_SUCCESS);
  EXPECT_EQ(jit.travelling()[0].value, 0u);
  marshal::jit_results results;
  results.info_log = "text";
  results.values = {0};
  jit.deliver(results);
  EXPECT_STREQ(info, "abc");
}

TEST(jit_options, a_huge_log_is_asked_for_within_the_limit) {
  char* const anywhere = static_cast<char*>(number(4096));
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  void* values[] = {number(0x80000000), anywhere};
  jit_options jit;
  ASSERT_EQ(jit.take(2, options, values), CUDA_SUCCESS);
  EXPECT_EQ(jit.travelling()[0].value, marshal::max_jit_log);
  EXPECT_EQ(jit.travelling()[1].value, marshal::max_jit_log);
}

TEST(jit_options, what_cannot_travel_is_refused) {
  void* values[] = {nullptr};
  CUjit_option names[] = {CU_JIT_GLOBAL_SYMBOL_NAMES};
  EXPECT_EQ(jit_options().take(1, names, values), CUDA_ERROR_NOT_SUPPORTED);
  CUjit_option plain[] = {CU_JIT_LOG_VERBOSE};
  EXPECT_EQ(jit_options().take(1, plain, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(jit_options().take(1, nullptr, values), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(jit_options().take(100000, plain, values), CUDA_ERROR_INVALID_VALUE);
}

TEST(jit_options, results_of_another_length_write_nothing) {
  CUjit_option options[] = {CU_JIT_WALL_TIME};
  void* values[] = {number(1)};
  jit_options jit;
  ASSERT_EQ(jit.take(1, options, values), CUDA_SUCCESS);
  marshal::jit_results results;
  results.values = {5, 6};
  jit.deliver(results);
  EXPECT_EQ(values[0], number(1));
}

}  // namespace
}  // namespace outboard::frontend::cuda
