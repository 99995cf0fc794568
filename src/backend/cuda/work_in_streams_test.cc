#include "backend/cuda/work_in_streams.hh"

#include <gtest/gtest.h>

#include "api/cuda/functions.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t context = 7, other = 8;

CUstream stream(std::uintptr_t n) { return reinterpret_cast<CUstream>(n); }

TEST(work_in_streams, each_stream_is_named_once) {
  work_in_streams work;
  EXPECT_TRUE(work.all_of(context).empty());
  work.on(context, nullptr);
  work.on(context, stream(64));
  work.on(context, nullptr);
  ASSERT_EQ(work.all_of(context).size(), 2u);
  EXPECT_EQ(work.all_of(context)[0], nullptr);
  EXPECT_EQ(work.all_of(context)[1], stream(64));
  EXPECT_TRUE(work.all_of(other).empty());
}

TEST(work_in_streams, work_that_may_be_anywhere_is_known_again_after_a_wait) {
  work_in_streams work;
  work.on(context, nullptr);
  work.somewhere();
  EXPECT_TRUE(work.all_of(context).empty());
  work.on(context, nullptr);
  EXPECT_TRUE(work.all_of(context).empty());
  work.done(context, work.mark());
  EXPECT_TRUE(work.all_of(context).empty());  // there is none
  work.on(context, stream(64));
  ASSERT_EQ(work.all_of(context).size(), 1u);
  EXPECT_EQ(work.all_of(context)[0], stream(64));
}

TEST(work_in_streams, what_was_asked_before_the_first_launch_is_over_after_a_wait) {
  work_in_streams work;
  work.somewhere();  // modules are loaded, memory is filled
  work.on(context, nullptr);
  EXPECT_TRUE(work.all_of(context).empty());
  work.done(context, work.mark());
  work.on(context, nullptr);
  EXPECT_EQ(work.all_of(context).size(), 1u);
  EXPECT_TRUE(work.all_of(other).empty());
}

TEST(work_in_streams, a_wait_says_nothing_of_what_came_while_it_waited) {
  work_in_streams work;
  work.on(context, nullptr);
  const std::uint64_t mark = work.mark();
  work.on(context, stream(64));
  work.done(context, mark);
  EXPECT_EQ(work.all_of(context).size(), 2u);
}

TEST(work_in_streams, more_streams_than_are_worth_looking_at_are_not_known) {
  work_in_streams work;
  for (std::uintptr_t n = 0; n < work_in_streams::most; ++n) work.on(context, stream(64 + n));
  EXPECT_EQ(work.all_of(context).size(), work_in_streams::most);
  work.on(context, stream(32));
  EXPECT_TRUE(work.all_of(context).empty());
}

TEST(work_in_streams, work_of_two_contexts_is_not_known_whichever_is_waited_for) {
  work_in_streams work;
  work.on(context, nullptr);
  work.on(other, nullptr);
  for (const std::uint64_t waited : {other, context}) {
    work.done(waited, work.mark());
    work.on(context, nullptr);
    EXPECT_TRUE(work.all_of(context).empty());
    EXPECT_TRUE(work.all_of(other).empty());
  }
}

TEST(work_in_streams, a_wait_of_another_context_forgets_nothing) {
  work_in_streams work;
  work.on(context, nullptr);
  work.done(other, work.mark());
  EXPECT_EQ(work.all_of(context).size(), 1u);
}

TEST(work_in_streams, waits_and_questions_leave_no_work_and_the_rest_may) {
  EXPECT_TRUE(leaves_no_work(static_cast<std::uint32_t>(api::opcode::cuCtxSynchronize)));
  for (const api::opcode code : {api::opcode::cuLaunchKernel, api::opcode::cuMemcpyDtoD_v2,
                                 api::opcode::cuStreamDestroy_v2, api::opcode::cuModuleUnload})
    EXPECT_FALSE(leaves_no_work(static_cast<std::uint32_t>(code)));
}

}  // namespace
}  // namespace outboard::backend
