#include "marshal/opencl/box.hh"

#include <gtest/gtest.h>

namespace outboard::marshal::opencl {
namespace {

using sizes = std::array<std::size_t, 3>;
constexpr std::size_t most = ~std::size_t{0};

TEST(box, overflowing_boxes_are_refused) {
  box b;
  const sizes origin{1, 2, 3}, region{4, 5, 6};
  ASSERT_TRUE(b.set(origin.data(), region.data(), 16, 160));
  EXPECT_EQ(b.first, 3 * 160u + 2 * 16 + 1);
  EXPECT_EQ(b.extent, 5 * 160u + 4 * 16 + 4);
  EXPECT_EQ(b.bytes, 120u);
  EXPECT_FALSE(b.set(origin.data(), region.data(), 3, 0));
  EXPECT_FALSE(b.set(origin.data(), region.data(), 16, 100));
  EXPECT_FALSE(b.set(origin.data(), region.data(), most, 0));
  EXPECT_FALSE(b.set(nullptr, region.data(), 0, 0));
  const sizes far{0, 0, most};
  EXPECT_FALSE(b.set(far.data(), region.data(), 0, 0));
}

TEST(box, parts_lie_inside_even_if_their_sum_overflows) {
  EXPECT_TRUE(lies_inside(10, 0, 10));
  EXPECT_TRUE(lies_inside(10, 10, 0));
  EXPECT_FALSE(lies_inside(10, 1, 10));
  EXPECT_FALSE(lies_inside(10, most, 2));
  EXPECT_FALSE(lies_inside(10, 2, most));
}

TEST(box, regions_lie_inside_images) {
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY;
  shape.image_width = 7, shape.image_height = 5, shape.image_array_size = 3;
  EXPECT_EQ(extent_of(shape), (sizes{7, 3, 1}));
  shape.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  const sizes extent = extent_of(shape);
  EXPECT_EQ(extent, (sizes{7, 5, 3}));
  const sizes zero{}, corner{6, 4, 2}, one{1, 1, 1}, two{1, 2, 1}, far{most, 0, 0};
  EXPECT_TRUE(lies_inside(extent, zero.data(), extent.data()));
  EXPECT_TRUE(lies_inside(extent, corner.data(), one.data()));
  EXPECT_FALSE(lies_inside(extent, corner.data(), two.data()));
  EXPECT_FALSE(lies_inside(extent, zero.data(), zero.data()));
  EXPECT_FALSE(lies_inside(extent, far.data(), two.data()));
  EXPECT_FALSE(lies_inside(extent, nullptr, one.data()));
}

}  // namespace
}  // namespace outboard::marshal::opencl
