#include "frontend/host_functions.hh"

#include <gtest/gtest.h>

#include <array>

namespace outboard::frontend {
namespace {

TEST(host_box, is_seen_without_gaps) {
  std::array<std::byte, 64> memory{};
  host_box box;
  box.base = memory.data();
  box.width = 4, box.height = 2, box.depth = 2, box.pitch = 8, box.slice = 32;
  EXPECT_EQ(box.size(), 16u);
  EXPECT_FALSE(box.gapless());
  EXPECT_EQ(box.place(0, 4), memory.data());
  EXPECT_EQ(box.place(5, 2), memory.data() + 8 + 1);
  EXPECT_EQ(box.place(8, 4), memory.data() + 32);
  EXPECT_EQ(box.place(15, 1), memory.data() + 40 + 3);
}

TEST(host_box, gives_no_place_across_rows_or_beyond_its_end) {
  std::array<std::byte, 64> memory{};
  host_box box;
  box.base = memory.data();
  box.width = 4, box.height = 2, box.pitch = 8, box.slice = 16;
  EXPECT_EQ(box.place(2, 3), nullptr);
  EXPECT_EQ(box.place(8, 1), nullptr);
  EXPECT_EQ(box.place(4, 5), nullptr);
  EXPECT_EQ(box.place(~std::uint64_t{0}, 2), nullptr);
  EXPECT_EQ(box.place(1, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(host_box{}.place(0, 0), nullptr);
}

TEST(host_box, rows_that_touch_are_one) {
  std::array<std::byte, 64> memory{};
  host_box box;
  box.base = memory.data();
  box.width = box.pitch = 8, box.height = 4, box.slice = 32, box.depth = 2;
  EXPECT_TRUE(box.gapless());
  EXPECT_EQ(box.place(3, 40), memory.data() + 3);
}

}  // namespace
}  // namespace outboard::frontend
