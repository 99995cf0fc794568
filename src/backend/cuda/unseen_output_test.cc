#include "backend/cuda/unseen_output.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

constexpr std::uint64_t context = 7, other = 8;

TEST(unseen_output, there_is_none_before_code_that_prints_is_launched) {
  unseen_output output;
  EXPECT_FALSE(output.possible());
  output.launched(context);
  EXPECT_FALSE(output.possible());
  output.code_prints();
  EXPECT_TRUE(output.possible());
}

TEST(unseen_output, there_is_none_after_a_wait_until_the_next_launch) {
  unseen_output output;
  output.code_prints();
  output.launched(context);
  output.waited(output.mark(context));
  EXPECT_FALSE(output.possible());
  output.launched(context);
  EXPECT_TRUE(output.possible());
}

TEST(unseen_output, a_wait_says_nothing_of_what_was_launched_meanwhile) {
  unseen_output output;
  output.code_prints();
  output.launched(context);
  const std::uint64_t mark = output.mark(context);
  output.launched(context);
  output.waited(mark);
  EXPECT_TRUE(output.possible());
}

TEST(unseen_output, a_wait_for_one_context_says_nothing_of_another) {
  unseen_output output;
  output.code_prints();
  output.launched(context);
  output.waited(output.mark(other));
  EXPECT_TRUE(output.possible());
  output.launched(other);
  for (const std::uint64_t one : {context, other}) output.waited(output.mark(one));
  EXPECT_TRUE(output.possible());
}

TEST(unseen_output, what_was_launched_anywhere_no_wait_is_known_to_cover) {
  unseen_output output;
  output.code_prints();
  output.launched_anywhere();
  output.waited(output.mark(context));
  EXPECT_TRUE(output.possible());
  output.launched(context);
  output.waited(output.mark(context));
  EXPECT_TRUE(output.possible());
}

}  // namespace
}  // namespace outboard::backend
