#include "base/random.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace outboard {
namespace {

TEST(Random, EachValueIsFresh) {
  using token = std::array<std::byte, 16>;
  std::vector<token> seen;
  for (int i = 0; i < 64; ++i) {
    const auto fresh = random_value<token>();
    EXPECT_EQ(std::ranges::find(seen, fresh), seen.end());
    seen.push_back(fresh);
  }
}

/// More than the kernel promises to give at once, and not a byte more than was asked for.
TEST(Random, FillsAllOfALongBufferAndNothingElse) {
  constexpr std::size_t size = 1000, piece = 50, margin = 8;
  constexpr std::byte before{0x5a};
  std::vector<std::byte> buffer(size + margin, before);
  fill_random(std::span(buffer).first(size));
  for (std::size_t at = 0; at < size; at += piece) {
    const auto part = std::span(buffer).subspan(at, piece);
    EXPECT_FALSE(std::ranges::all_of(part, [&](std::byte b) { return b == before; })) << at;
  }
  const auto rest = std::span(buffer).last(margin);
  EXPECT_TRUE(std::ranges::all_of(rest, [&](std::byte b) { return b == before; }));
  fill_random({});
}

}  // namespace
}  // namespace outboard
