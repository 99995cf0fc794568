#include "frontend/opencl/image_shape.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::opencl {
namespace {

using sizes = std::array<std::size_t, 3>;

std::unique_ptr<memory_info> image_of(cl_mem_object_type type, std::size_t width, std::size_t height,
                                      std::size_t depth, std::size_t layers) {
  auto made = std::make_unique<memory_info>();
  memory_info& image = *made;
  image.type = image.shape.image_type = type;
  image.shape.image_width = width;
  image.shape.image_height = height;
  image.shape.image_depth = depth;
  image.shape.image_array_size = layers;
  image.made.element_size = 4;
  return made;
}

TEST(image_shape, extents_count_layers_where_there_are_layers) {
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE1D, 5, 7, 8, 9)->shape), (sizes{5, 1, 1}));
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE1D_BUFFER, 5, 7, 8, 9)->shape), (sizes{5, 1, 1}));
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE1D_ARRAY, 5, 7, 8, 9)->shape), (sizes{5, 9, 1}));
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE2D, 5, 7, 8, 9)->shape), (sizes{5, 7, 1}));
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE2D_ARRAY, 5, 7, 8, 9)->shape), (sizes{5, 7, 9}));
  EXPECT_EQ(extent_of(image_of(CL_MEM_OBJECT_IMAGE3D, 5, 7, 8, 9)->shape), (sizes{5, 7, 8}));
}

TEST(image_shape, regions_lie_inside_or_are_refused) {
  const auto image_owner = image_of(CL_MEM_OBJECT_IMAGE2D, 10, 20, 0, 0);
  const memory_info& image = *image_owner;
  const auto check = [&](sizes origin, sizes region) {
    return check_region(image, origin.data(), region.data());
  };
  EXPECT_EQ(check({0, 0, 0}, {10, 20, 1}), CL_SUCCESS);
  EXPECT_EQ(check({9, 19, 0}, {1, 1, 1}), CL_SUCCESS);
  EXPECT_EQ(check({9, 19, 0}, {2, 1, 1}), CL_INVALID_VALUE);
  EXPECT_EQ(check({0, 0, 0}, {10, 20, 2}), CL_INVALID_VALUE);
  EXPECT_EQ(check({0, 0, 1}, {1, 1, 1}), CL_INVALID_VALUE);
  EXPECT_EQ(check({0, 0, 0}, {0, 1, 1}), CL_INVALID_VALUE);
  EXPECT_EQ(check({~std::size_t{0}, 0, 0}, {2, 1, 1}), CL_INVALID_VALUE);
  const sizes some{1, 1, 1};
  EXPECT_EQ(check_region(image, nullptr, some.data()), CL_INVALID_VALUE);
  EXPECT_EQ(check_region(image, some.data(), nullptr), CL_INVALID_VALUE);
}

TEST(image_shape, boxes_of_the_program_have_its_pitches) {
  box b;
  const auto flat_owner = image_of(CL_MEM_OBJECT_IMAGE2D, 10, 20, 0, 0);
  const memory_info& flat = *flat_owner;
  const sizes region{3, 5, 1};
  EXPECT_TRUE(set_box(b, flat, region.data(), 0, 0));
  EXPECT_EQ(b.bytes, 60u);
  EXPECT_EQ(b.extent, 60u);
  EXPECT_TRUE(set_box(b, flat, region.data(), 40, 0));
  EXPECT_EQ(b.extent, 4 * 40u + 12);
  EXPECT_FALSE(set_box(b, flat, region.data(), 11, 0));
  // An array of rows has its pitch where other images have the pitch of their slices.
  const auto rows_owner = image_of(CL_MEM_OBJECT_IMAGE1D_ARRAY, 10, 0, 0, 6);
  const memory_info& rows = *rows_owner;
  EXPECT_TRUE(set_box(b, rows, region.data(), 0, 64));
  EXPECT_EQ(b.row, 64u);
  EXPECT_EQ(b.extent, 4 * 64u + 12);
  const sizes endless{~std::size_t{0}, 1, 1};
  EXPECT_FALSE(set_box(b, flat, endless.data(), 0, 0));
}

}  // namespace
}  // namespace outboard::frontend::opencl
