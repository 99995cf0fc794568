#include "frontend/memory/virtual_book.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

constexpr std::uint64_t m = 2u << 20, base = 16 * m;

struct VirtualBook : testing::Test {
  VirtualBook() { book.reserve({base, 8 * m, 0}); }
  virtual_book book;
};

TEST_F(VirtualBook, places_only_inside_a_range_and_never_over_another) {
  EXPECT_FALSE(book.place({base - m, m, 1}));
  EXPECT_FALSE(book.place({base + 7 * m, 2 * m, 1}));
  EXPECT_FALSE(book.place({base, ~0ull - m, 1}));
  EXPECT_TRUE(book.place({base + m, 2 * m, 1}));
  EXPECT_FALSE(book.place({base + 2 * m, m, 2}));
  EXPECT_FALSE(book.place({base, 2 * m, 2}));
  EXPECT_TRUE(book.place({base, m, 2}));
  EXPECT_EQ(book.at(base + 3 * m - 1)->handle, 1u);
  EXPECT_EQ(book.at(base)->handle, 2u);
  EXPECT_FALSE(book.at(base + 3 * m));
}

TEST_F(VirtualBook, unmaps_whole_placements_only) {
  ASSERT_TRUE(book.place({base, m, 1}));
  ASSERT_TRUE(book.place({base + m, 2 * m, 2}));
  EXPECT_FALSE(book.displace(base, 2 * m));
  EXPECT_FALSE(book.displace(base + 2 * m, m));
  EXPECT_FALSE(book.displace(base, 0));
  EXPECT_TRUE(book.tiled(base, 3 * m));
  EXPECT_EQ(book.displace(base, 3 * m)->size(), 2u);
  EXPECT_FALSE(book.at(base));
}

TEST_F(VirtualBook, unmaps_over_gaps_once_anything_was_mapped) {
  EXPECT_FALSE(book.displace(base, m));
  ASSERT_TRUE(book.place({base + m, m, 1}));
  ASSERT_TRUE(book.place({base + 3 * m, m, 2}));
  EXPECT_EQ(book.displace(base, 9 * m)->size(), 2u);
  EXPECT_EQ(book.displace(base, m)->size(), 0u);
  EXPECT_FALSE(book.displace(base - m, m));
  EXPECT_FALSE(book.displace(base + 8 * m, m));
}

TEST_F(VirtualBook, a_mapping_that_was_refused_leaves_nothing) {
  ASSERT_TRUE(book.place({base, m, 1}));
  book.withdraw(base);
  EXPECT_FALSE(book.displace(base, m));  // nothing was ever mapped
  EXPECT_FALSE(book.at(base));
  ASSERT_TRUE(book.place({base, m, 2}));
  ASSERT_TRUE(book.place({base + m, m, 3}));
  book.withdraw(base + m);
  EXPECT_EQ(book.displace(base, 2 * m)->size(), 1u);
  EXPECT_EQ(book.displace(base, m)->size(), 0u);
}

TEST_F(VirtualBook, knows_what_the_host_has_and_who_may_use_it) {
  ASSERT_TRUE(book.place({base, m, 1}));
  EXPECT_FALSE(book.has_host());
  ASSERT_TRUE(book.place({base + m, m, 2, true}));
  EXPECT_TRUE(book.has_host());
  book.note_access(base + m, {1, 0}, 3);
  book.note_access(base + 5 * m, {1, 0}, 3);  // nothing is there
  const auto all = book.within(base, 2 * m);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].host);
  EXPECT_EQ(all[1].access.at({1, 0}), 3u);
  EXPECT_EQ(book.within(base + m, 7 * m).size(), 1u);
  EXPECT_EQ(book.range_of(base + 8 * m - 1)->base, base);
  EXPECT_FALSE(book.range_of(base + 8 * m));
  EXPECT_FALSE(book.range_of(base - 1));
}

TEST_F(VirtualBook, a_range_in_use_cannot_be_freed) {
  ASSERT_TRUE(book.place({base + 4 * m, m, 1}));
  EXPECT_FALSE(book.free(base, 8 * m));
  EXPECT_FALSE(book.free(base, 4 * m));
  ASSERT_EQ(book.displace(base + 4 * m, m)->size(), 1u);
  EXPECT_EQ(book.free(base, 8 * m)->slot, 0);
  EXPECT_FALSE(book.free(base, 8 * m));
}

}  // namespace
}  // namespace outboard::frontend
