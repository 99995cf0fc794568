#include "frontend/opencl/transfer/parts.hh"

#include <gtest/gtest.h>

#include <random>

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::place_body;
using marshal::opencl::place_form;

TEST(parts, of_a_row_are_even_but_for_the_last) {
  place_body row;
  row.offset = 100, row.size = 10;
  const parts all(row, 10, 4);
  ASSERT_EQ(all.count(), 3u);
  EXPECT_EQ(all.place(1).offset, 104u);
  EXPECT_EQ(all.place(2).offset, 108u);
  EXPECT_EQ(all.place(2).size, 2u);
  EXPECT_EQ(all.offset(3), 10u);
}

TEST(parts, cannot_be_less_than_a_row_of_an_image) {
  place_body image;
  image.form = place_form::image;
  image.region[0] = 5, image.region[1] = 3, image.region[2] = 2;
  const parts all(image, 5 * 4 * 3 * 2, 19);
  ASSERT_EQ(all.count(), 1u);
  EXPECT_EQ(all.length(0), 120u);
  EXPECT_EQ(all.place(0).region[2], 2u);
}

/// Each row of the region is in one part, in its order, and no part has more than it may.
void expect_whole(const place_body& whole, std::uint64_t row, std::uint64_t most) {
  const std::uint64_t rows = whole.region[1], slices = whole.region[2];
  const parts all(whole, row * rows * slices, most);
  std::uint64_t next = 0;
  for (std::uint64_t n = 0; n < all.count(); ++n) {
    const place_body part = all.place(n);
    ASSERT_EQ(part.origin[0], whole.origin[0]);
    ASSERT_EQ(part.region[0], whole.region[0]);
    ASSERT_EQ(all.offset(n), next * row);
    ASSERT_EQ(all.length(n), row * part.region[1] * part.region[2]);
    ASSERT_LE(all.length(n), most);
    for (std::uint64_t z = 0; z < part.region[2]; ++z) {
      for (std::uint64_t y = 0; y < part.region[1]; ++y, ++next) {
        ASSERT_EQ(part.origin[1] + y, whole.origin[1] + next % rows);
        ASSERT_EQ(part.origin[2] + z, whole.origin[2] + next / rows);
      }
    }
  }
  ASSERT_EQ(next, rows * slices);
}

TEST(parts, of_a_region_have_each_row_once_and_in_order) {
  std::mt19937 random(1);
  const auto up_to = [&](std::uint64_t most) { return 1 + random() % most; };
  for (int i = 0; i < 3000; ++i) {
    place_body image;
    image.form = i % 2 ? place_form::image : place_form::box;
    for (auto& each : image.origin) each = random() % 9;
    image.region[0] = up_to(20), image.region[1] = up_to(30), image.region[2] = up_to(7);
    const std::uint64_t row = image.region[0] * (i % 2 ? 4 : 1);
    expect_whole(image, row, row + random() % (row * 40));
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace outboard::frontend::opencl
