#include "backend/daemon/queue/seats.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

share plain(const std::string& account) { return {.account = account}; }

/// As many as it gets of places for which all run.
std::size_t take_all(seats& s, const share& has) {
  std::size_t got = 0;
  while (s.refusal_of(has).empty()) {
    s.begins(has);
    ++got;
  }
  return got;
}

TEST(seats, one_identity_alone_takes_all) {
  seats s({.sessions = 16, .running = 0});
  EXPECT_EQ(take_all(s, plain("a")), 16u);
  EXPECT_EQ(s.refusal_of(plain("a")), "16 sessions run, which is the limit");
}

TEST(seats, of_several_none_takes_all_and_each_that_comes_finds_one_as_long_as_two_are_free) {
  for (const auto& [places, first] :
       {std::pair{1u, 1u}, {2u, 1u}, {3u, 2u}, {4u, 3u}, {16u, 11u}, {1024u, 683u}}) {
    seats s({.sessions = places, .running = 0});
    s.set_several(true);
    EXPECT_EQ(take_all(s, plain("a")), first) << places;
    const std::size_t second = take_all(s, plain("b"));
    EXPECT_TRUE(places == 1 || second >= 1) << places;
  }
  seats s({.sessions = 1024, .running = 0});
  s.set_several(true);
  take_all(s, plain("greedy"));
  for (int i = 0; i < 300; ++i) {
    const share one = plain("tenant " + std::to_string(i));
    ASSERT_EQ(s.refusal_of(one), "") << i;
    s.begins(one);
  }
}

TEST(seats, the_refusal_says_whose_limit_was_met_and_what_to_do) {
  seats s({.sessions = 3, .running = 0});
  s.set_several(true);
  take_all(s, plain("token ann"));
  EXPECT_EQ(
      s.refusal_of(plain("token ann")),
      "of token ann 2 sessions run and 0 wait, and while 1 of this server's 3 places are free no identity "
      "gets more: end one of them, or ask for `sessions` and `waiting` of its own in the server's "
      "configuration");
  EXPECT_EQ(s.refusal_of(plain("token bob")), "");
  seats t({.sessions = 16, .running = 0});
  const share has{.account = "identity lab", .table = "lab", .sessions = 1, .waiting = 1};
  t.begins(has);
  EXPECT_EQ(t.refusal_of(has), "") << "it waits";
  EXPECT_FALSE(t.may_run(has));
  t.waits(has);
  EXPECT_EQ(
      t.refusal_of(has),
      "of [identity.lab] 1 session runs and 1 waits, and it may run 1 and have 1 wait: end one of them, or "
      "come again when one has ended");
}

TEST(seats, limits_of_its_own_count_in_the_place_of_the_fair_ones) {
  seats s({.sessions = 8, .running = 2});
  s.set_several(true);
  const share own{.account = "identity a", .table = "a", .sessions = 2, .waiting = 6};
  s.begins(own);
  EXPECT_TRUE(s.may_run(own)) << "the last seat, as its administrator wants";
  s.begins(own);
  EXPECT_FALSE(s.may_run(own));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(s.refusal_of(own), "") << i;
    s.waits(own);
  }
  EXPECT_NE(s.refusal_of(own), "");
}

TEST(seats, the_last_seat_is_for_one_that_has_none) {
  seats s({.sessions = 100, .running = 2});
  s.set_several(true);
  s.begins(plain("a"));
  EXPECT_FALSE(s.may_run(plain("a")));
  EXPECT_TRUE(s.may_run(plain("b")));
  s.begins(plain("b"));
  EXPECT_FALSE(s.may_run(plain("c")));
  s.ends(plain("a"));
  EXPECT_FALSE(s.may_run(plain("b")));
  EXPECT_TRUE(s.may_run(plain("c")));
}

TEST(seats, less_than_is_taken_is_no_harm) {
  seats s({.sessions = 8, .running = 4});
  for (int i = 0; i < 4; ++i) s.begins(plain("a"));
  s.set({.sessions = 2, .running = 1});
  for (const bool several : {false, true}) {
    s.set_several(several);
    EXPECT_FALSE(s.may_run(plain("b")));
    EXPECT_NE(s.refusal_of(plain("b")), "");
  }
  for (int i = 0; i < 4; ++i) s.ends(plain("a"));
  EXPECT_TRUE(s.may_run(plain("b")));
  EXPECT_EQ(s.held_by("a").running, 0u);
}

}  // namespace
}  // namespace outboard::backend
