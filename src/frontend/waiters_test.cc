#include "frontend/waiters.hh"

#include <gtest/gtest.h>

#include <deque>

namespace outboard::frontend {
namespace {

TEST(waiters, are_found_by_their_tickets_until_they_are_removed) {
  waiters all;
  std::deque<waiter> many(300);  // several in each bucket
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i].ticket = 7 + 3 * i;
    all.add(many[i]);
  }
  for (waiter& w : many) EXPECT_EQ(all.find(w.ticket), &w);
  EXPECT_EQ(all.find(8), nullptr);
  for (std::size_t i = 0; i < many.size(); i += 2) all.remove(many[i]);
  for (std::size_t i = 0; i < many.size(); ++i)
    EXPECT_EQ(all.find(many[i].ticket), i % 2 ? &many[i] : nullptr) << i;
}

TEST(waiters, an_absent_waiter_may_be_removed) {
  waiters all;
  waiter in, out;
  in.ticket = out.ticket = 5;
  all.add(in);
  all.remove(out);
  EXPECT_EQ(all.find(5), &in);
}

TEST(waiters, each_visits_all_until_it_is_asked_to_stop) {
  waiters all;
  std::deque<waiter> many(100);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].ticket = i + 1, all.add(many[i]);
  int seen = 0;
  all.each([&](const waiter&) { return ++seen, false; });
  EXPECT_EQ(seen, 100);
  seen = 0;
  all.each([&](const waiter&) { return ++seen == 3; });
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace outboard::frontend
