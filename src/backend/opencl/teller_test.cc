#include "backend/opencl/teller.hh"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace outboard::backend::opencl {
namespace {

TEST(teller, tells_in_the_order_of_the_news) {
  std::vector<std::uint64_t> told;
  std::promise<void> all;
  teller carrier([&](const teller::news& what) {
    told.push_back(what.number);
    if (what.number == 100) all.set_value();
  });
  for (std::uint64_t n = 1; n <= 100; ++n) carrier.pass_on({n, 0});
  all.get_future().wait();
  carrier.end();
  ASSERT_EQ(told.size(), 100u);
  for (std::uint64_t n = 1; n <= 100; ++n) EXPECT_EQ(told[n - 1], n);
}

TEST(teller, says_nothing_after_its_end) {
  int told = 0;
  teller carrier([&](const teller::news&) { ++told; });
  carrier.end();
  carrier.pass_on({1, 0});
  carrier.end();
  EXPECT_EQ(told, 0);
}

/// Acts as a callback that comes while the news of another one is being sent.
TEST(teller, takes_news_while_it_tells) {
  std::promise<void> first, second, go_on;
  teller carrier([&](const teller::news& what) {
    if (what.number == 2) return second.set_value();
    first.set_value();
    go_on.get_future().wait();
  });
  carrier.pass_on({1, 0});
  first.get_future().wait();
  carrier.pass_on({2, 0});  // would hang if it waited
  go_on.set_value();
  second.get_future().wait();
}

}  // namespace
}  // namespace outboard::backend::opencl
