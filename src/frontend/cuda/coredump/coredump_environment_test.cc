#include "frontend/cuda/coredump/coredump_environment.hh"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>

namespace outboard::frontend::cuda {
namespace {

coredump_wishes read(const std::map<std::string, std::string>& environment) {
  return read_coredump_environment(
      [&](const char* name) -> const char* {
        const auto at = environment.find(name);
        return at == environment.end() ? nullptr : at->second.c_str();
      },
      {"vm", 1523, 1795206518});
}

int flags_of(const coredump_wishes& w) {
  int flags = 0;
  const std::string& bytes = w.values.at(CU_COREDUMP_GENERATION_FLAGS);
  std::memcpy(&flags, bytes.data(), sizeof flags);
  return flags;
}

TEST(coredump_environment, nothing_is_set_without_it) {
  const auto w = read({{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0"}});
  EXPECT_TRUE(w.values.empty());
  EXPECT_FALSE(w.dump);
}

// The values are what a driver showed.
TEST(coredump_environment, names_are_expanded_as_by_a_driver) {
  const auto w =
      read({{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"}, {"CUDA_COREDUMP_FILE", "f.%h.%p.%t.%%.%q.core"}});
  EXPECT_TRUE(w.dump);
  EXPECT_EQ(w.values.at(CU_COREDUMP_FILE), "f.vm.1523.1795206518.%.q.core");
}

TEST(coredump_environment, flags_win_over_the_older_words_and_tell_whether_the_host_is_dumped) {
  const auto w = read({{"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1"},
                       {"CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort,skip_global_memory"}});
  EXPECT_EQ(flags_of(w), 0x12);
  EXPECT_EQ(w.values.at(CU_COREDUMP_TRIGGER_HOST), std::string(1, '\0'));
  EXPECT_EQ(w.values.count(CU_COREDUMP_LIGHTWEIGHT), 0u);
  EXPECT_EQ(flags_of(read({{"CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "0"}})), CU_COREDUMP_SKIP_ABORT);
}

// With the switch on, 580.159.04 left both attributes alone, and its dump was as large as without the word.
TEST(coredump_environment, the_word_for_light_dumps_is_not_heeded_where_faults_dump) {
  const auto w =
      read({{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"}, {"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1"}});
  EXPECT_TRUE(w.dump);
  EXPECT_TRUE(w.values.empty());
  EXPECT_EQ(read({{"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1"}}).values.count(CU_COREDUMP_LIGHTWEIGHT), 1u);
}

TEST(coredump_environment, dumps_on_demand_are_another_wish) {
  const auto w = read({{"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1"}, {"CUDA_COREDUMP_PIPE", "p.%p"}});
  EXPECT_TRUE(w.on_demand);
  EXPECT_FALSE(w.dump);
  EXPECT_EQ(w.values.at(CU_COREDUMP_PIPE), "p.1523");
}

TEST(coredump_environment, words_that_mean_nothing_are_told) {
  const auto w = read({{"CUDA_COREDUMP_GENERATION_FLAGS", "nonsense,skip_abort"}});
  EXPECT_EQ(w.unknown, std::vector<std::string>{"nonsense"});
  EXPECT_EQ(flags_of(w), CU_COREDUMP_SKIP_ABORT);
}

}  // namespace
}  // namespace outboard::frontend::cuda
