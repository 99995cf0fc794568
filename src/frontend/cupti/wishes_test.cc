#include "frontend/cupti/wishes.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cupti {
namespace {

constexpr auto kernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr auto copy = CUPTI_ACTIVITY_KIND_MEMCPY;

TEST(wishes, of_all_contexts_hold_for_each) {
  wishes w;
  EXPECT_FALSE(w.has(kernel) || w.has(kernel, 1));
  w.set(kernel, true);
  EXPECT_TRUE(w.has(kernel) && w.has(kernel, 1) && w.has(kernel, 0));
  EXPECT_FALSE(w.has(copy) || w.has(copy, 1));
  w.set(kernel, false);
  EXPECT_FALSE(w.has(kernel) || w.has(kernel, 1));
}

TEST(wishes, of_one_context_count_more) {
  wishes w;
  w.set(kernel, 2, true);
  EXPECT_TRUE(w.has(kernel) && w.has(kernel, 2));
  EXPECT_FALSE(w.has(kernel, 1));
  w.set(copy, true);
  w.set(copy, 1, false);
  EXPECT_TRUE(w.has(copy, 2));
  EXPECT_FALSE(w.has(copy, 1));
  w.set(kernel, 2, false);
  EXPECT_FALSE(w.has(kernel));
  w.forget_contexts();
  EXPECT_TRUE(w.has(copy, 1));
}

}  // namespace
}  // namespace outboard::frontend::cupti
