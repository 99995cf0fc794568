#include "base/append_format.hh"

#include <gtest/gtest.h>

namespace outboard {
namespace {

TEST(append_format, it_goes_to_the_end) {
  std::string text = "a";
  append_format(text, "%d %s", 7, "b");
  append_format(text, "%5.1f", 2.25);
  EXPECT_EQ(text, "a7 b  2.2");
}

TEST(append_format, nothing_is_cut) {
  for (const std::size_t size : {0u, 254u, 255u, 256u, 257u, 10'000u}) {
    const std::string longer(size, 'x');
    std::string text = "a";
    append_format(text, "%s", longer.c_str());
    EXPECT_EQ(text, "a" + longer);
  }
}

}  // namespace
}  // namespace outboard
