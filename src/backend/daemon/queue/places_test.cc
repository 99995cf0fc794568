#include "backend/daemon/queue/places.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace outboard::backend {
namespace {

identity_terms tenant(std::string name, std::uint32_t weight = 100, std::uint32_t priority = 0,
                      std::uint32_t running = 0) {
  return {.name = std::move(name),
          .may = {},
          .devices = {},
          .sessions = 0,
          .running = running,
          .waiting = 0,
          .weight = weight,
          .priority = priority};
}

TEST(places, of_one_identity_who_came_first) {
  const identity_terms a = tenant("a");
  const std::vector<const identity_terms*> waiting{&a, &a, &a};
  EXPECT_EQ(next_for_place(waiting, {.most = 1, .all = 0, .of = {}}), 0u);
  EXPECT_EQ(next_for_place(waiting, {.most = 1, .all = 1, .of = {{"a", 1}}}), std::nullopt);
  EXPECT_EQ(next_for_place({}, {}), std::nullopt);
}

TEST(places, go_to_who_has_fewest_for_its_weight) {
  const identity_terms a = tenant("a", 100), b = tenant("b", 300);
  const std::vector<const identity_terms*> waiting{&a, &b};
  EXPECT_EQ(next_for_place(waiting, {.most = 9, .all = 3, .of = {{"a", 1}, {"b", 2}}}), 1u);
  EXPECT_EQ(next_for_place(waiting, {.most = 9, .all = 4, .of = {{"a", 1}, {"b", 3}}}), 0u);
  EXPECT_EQ(next_for_place(waiting, {.most = 9, .all = 5, .of = {{"a", 1}, {"b", 4}}}), 0u);
}

TEST(places, go_by_priority_and_stop_at_own_limits) {
  const identity_terms a = tenant("a"), urgent = tenant("urgent", 1, 5, 2);
  const std::vector<const identity_terms*> waiting{&a, &urgent, &urgent};
  EXPECT_EQ(next_for_place(waiting, {.most = 9, .all = 1, .of = {{"urgent", 1}}}), 1u);
  EXPECT_EQ(next_for_place(waiting, {.most = 9, .all = 2, .of = {{"urgent", 2}}}), 0u);
  EXPECT_EQ(order_of_places(waiting, {.most = 9, .all = 1, .of = {{"urgent", 1}}}),
            (std::vector<std::size_t>{1, 0, 2}));
}

/// Everybody always has sessions that wait, sessions end at random: places follow the weights, within 2 %.
TEST(places, follow_weights_in_the_long_run) {
  const std::vector<identity_terms> who{tenant("a", 100), tenant("b", 200), tenant("c", 500)};
  std::mt19937 random(7);
  taken_places taken{.most = 16, .all = 0, .of = {}};
  std::map<std::string, double> held;
  std::vector<std::string> running;
  const std::vector<const identity_terms*> waiting{&who[0], &who[1], &who[2]};
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    while (const auto next = next_for_place(waiting, taken)) {
      taken.take(waiting[*next]->name);
      running.push_back(waiting[*next]->name);
    }
    for (const auto& [name, count] : taken.of) held[name] += static_cast<double>(count) / rounds;
    const std::size_t ends = random() % running.size();
    --taken.of[running[ends]];
    --taken.all;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ends));
  }
  for (const identity_terms& one : who)
    EXPECT_NEAR(held[one.name] / 16, one.weight / 800.0, 0.02) << one.name;
}

/// The order is what next_for_place() gives one after the other, and has everybody once.
TEST(places, have_an_order_that_agrees_with_next) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<identity_terms> who;
    for (int i = 0; i < 4; ++i)
      who.push_back(tenant(std::string(1, static_cast<char>('a' + i)), 1 + random() % 300, random() % 2,
                           random() % 3 * 4));
    taken_places taken;
    for (const identity_terms& one : who) {
      for (std::uint32_t n = random() % 4; n > 0; --n) taken.take(one.name);
    }
    std::vector<const identity_terms*> waiting;
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < 12; ++i) waiting.push_back(&who[random() % who.size()]), left.push_back(i);
    const std::vector<std::size_t> order = order_of_places(waiting, taken);
    ASSERT_EQ(order.size(), waiting.size());
    for (const std::size_t each : order) {
      std::vector<const identity_terms*> still;
      for (const std::size_t i : left) still.push_back(waiting[i]);
      const auto next = next_for_place(still, taken);
      if (!next) break;
      ASSERT_EQ(left[*next], each);
      taken.take(waiting[each]->name);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(*next));
    }
    std::vector<std::size_t> sorted = order;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
  }
}

}  // namespace
}  // namespace outboard::backend
