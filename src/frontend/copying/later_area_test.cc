#include "frontend/copying/later_area.hh"

#include <gtest/gtest.h>

#include <set>

namespace outboard::frontend {
namespace {

const drains::stream_key stream_a{1, 10, 0}, stream_b{1, 11, 0};

class area : public testing::Test {
 protected:
  area() : memory_(later_area::first_page / sizeof(std::uint32_t)) {
    area_.open(reinterpret_cast<std::uint64_t>(memory_.data()), unique_fd());
  }
  void free(const later_area::turn& t) { memory_[t.freed / sizeof(std::uint32_t)] = t.value; }
  std::vector<std::uint32_t> memory_;
  later_area area_;
};

TEST_F(area, blocks_that_are_free_are_not_waited_for) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 8; ++i) {
    const auto turn = area_.next(stream_a);
    ASSERT_TRUE(turn);
    EXPECT_FALSE(turn->wait);
    EXPECT_TRUE(seen.insert(turn->offset).second);
    EXPECT_LE(turn->offset + later_area::block_size, later_area::size);
    EXPECT_LT(turn->freed, later_area::first_page);
  }
}

TEST_F(area, a_stream_waits_for_its_own_blocks_in_their_order_and_never_for_others) {
  std::vector<later_area::turn> first;
  std::optional<later_area::turn> turn;
  while ((turn = area_.next(stream_a)) && !turn->wait) first.push_back(*turn);
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->offset, first.front().offset);
  EXPECT_EQ(turn->value, 2u);
  EXPECT_LT(first.size(), later_area::blocks) << "one stream has taken all";
  for (int i = 0; i < 100; ++i) {
    const auto other = area_.next(stream_b);
    ASSERT_TRUE(other);
    for (const auto& t : first) EXPECT_NE(other->offset, t.offset);
  }
}

TEST_F(area, many_streams_get_some_and_the_next_ones_none) {
  std::size_t had = 0;
  for (std::uint64_t s = 0; s < later_area::blocks + 5; ++s) {
    const drains::stream_key key{1, 100 + s, 0};
    if (area_.next(key)) ++had;
    (void)area_.next(key);
  }
  EXPECT_GE(had, later_area::blocks / 2);
  EXPECT_FALSE(area_.next({1, 999, 0}));
}

TEST_F(area, freed_blocks_and_turns_taken_back_are_given_again) {
  const auto first = area_.next(stream_a);
  free(*first);
  const auto again = area_.next(stream_b);
  EXPECT_EQ(again->offset, first->offset);
  EXPECT_EQ(again->value, 2u);
  EXPECT_FALSE(again->wait);
  area_.take_back(*again);
  const auto third = area_.next(stream_a);
  EXPECT_EQ(third->offset, first->offset);
  EXPECT_EQ(third->value, 2u);
}

}  // namespace
}  // namespace outboard::frontend
