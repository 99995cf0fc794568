// Pieces of a box follow each other without gap, never exceed the limit, and cover every byte once.
#include "marshal/cuda/box_pieces.hh"

#include <gtest/gtest.h>

#include <vector>

namespace outboard::marshal {
namespace {

struct sample {
  box_extent box;
  std::uint64_t limit;
  std::size_t pieces;
};

TEST(BoxPieces, CoverTheBoxOnceInPackedOrder) {
  const sample samples[] = {
      {{16, 4, 3}, 1 << 20, 1},  // all at once
      {{16, 4, 6}, 128, 3},      // two slices a piece
      {{16, 5, 2}, 40, 6},       // two rows a piece, the last of a slice alone
      {{100, 2, 2}, 64, 8},      // parts of rows
      {{1, 1, 1}, 1, 1},
  };
  for (const sample& s : samples) {
    std::uint64_t all = 0;
    ASSERT_TRUE(s.box.bytes(all));
    std::vector<int> seen(all);
    std::size_t pieces = 0;
    for (std::uint64_t at = 0; at < all; ++pieces) {
      const box_piece p = box_piece_at(s.box, at, s.limit);
      ASSERT_GT(p.bytes(), 0u);
      ASSERT_LE(p.bytes(), s.limit);
      for (std::uint64_t z = 0; z < p.size.depth; ++z) {
        for (std::uint64_t y = 0; y < p.size.height; ++y) {
          for (std::uint64_t x = 0; x < p.size.width; ++x) {
            const std::uint64_t packed = ((p.z + z) * s.box.height + p.y + y) * s.box.width + p.x + x;
            ASSERT_EQ(packed, at + (z * p.size.height + y) * p.size.width + x);
            ++seen.at(packed);
          }
        }
      }
      at += p.bytes();
    }
    EXPECT_EQ(pieces, s.pieces);
    for (const int n : seen) EXPECT_EQ(n, 1);
  }
}

TEST(BoxPieces, ABoxTooLargeToCountIsSeen) {
  std::uint64_t bytes = 0;
  EXPECT_FALSE((box_extent{1ull << 32, 1ull << 32, 1}.bytes(bytes)));
  EXPECT_FALSE((box_extent{1ull << 40, 1ull << 20, 16}.bytes(bytes)));
  EXPECT_TRUE((box_extent{5ull << 30, 1, 3}.bytes(bytes)));
  EXPECT_EQ(bytes, 15ull << 30);
}

}  // namespace
}  // namespace outboard::marshal
