#include "frontend/cuda/code/made_maps.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cuda {
namespace {

made_maps::map filled(std::uint8_t with) {
  made_maps::map out;
  out.fill(with);
  return out;
}

TEST(made_maps, are_found_by_all_that_they_were_made_from) {
  made_maps all;
  EXPECT_FALSE(all.find(std::string("a\0b", 3)));
  all.keep(std::string("a\0b", 3), filled(1));
  all.keep(std::string("a\0c", 3), filled(2));
  EXPECT_EQ(all.find(std::string("a\0b", 3)), filled(1));
  EXPECT_EQ(all.find(std::string("a\0c", 3)), filled(2));
  EXPECT_FALSE(all.find("a"));
}

TEST(made_maps, are_bounded) {
  made_maps all;
  for (std::size_t i = 0; i <= made_maps::most; ++i) all.keep(std::to_string(i), filled(3));
  EXPECT_FALSE(all.find("0"));
  EXPECT_TRUE(all.find(std::to_string(made_maps::most)));
}

}  // namespace
}  // namespace outboard::frontend::cuda
