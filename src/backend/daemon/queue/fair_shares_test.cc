#include "backend/daemon/queue/fair_shares.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

std::size_t take_all(fair_shares& shares, const std::string& identity) {
  std::size_t count = 0;
  while (shares.take(identity)) ++count;
  return count;
}

TEST(fair_shares, leave_a_third_to_whoever_comes_second) {
  fair_shares shares(300);
  EXPECT_EQ(take_all(shares, "ann"), 200u);
  EXPECT_GT(take_all(shares, "bob"), 60u);
  EXPECT_GT(take_all(shares, "eve"), 15u);
  EXPECT_FALSE(shares.take("ann"));
}

TEST(fair_shares, many_that_take_what_they_can_leave_some_to_an_honest_one) {
  fair_shares shares(16384);
  for (bool more = true; more;) {
    more = false;
    for (int each = 0; each < 20; ++each) more |= shares.take("greedy " + std::to_string(each));
  }
  EXPECT_LT(shares.taken_by("greedy 0"), 16384u / 20);
  EXPECT_GT(take_all(shares, "honest"), 200u);
}

TEST(fair_shares, what_is_given_back_can_be_taken_again) {
  fair_shares shares(3);
  EXPECT_EQ(take_all(shares, "ann"), 2u);
  shares.give_back("ann");
  shares.give_back("nobody");
  EXPECT_EQ(shares.taken(), 1u);
  EXPECT_TRUE(shares.take("ann"));
  shares.give_back("ann");
  shares.give_back("ann");
  shares.give_back("ann");
  EXPECT_EQ(shares.taken(), 0u);
}

TEST(fair_shares, of_one_place_one_is_taken_and_of_none_none) {
  fair_shares one(1), none(0);
  EXPECT_EQ(take_all(one, "ann"), 1u);
  EXPECT_EQ(take_all(one, "bob"), 0u);
  EXPECT_EQ(take_all(none, "ann"), 0u);
}

}  // namespace
}  // namespace outboard::backend
