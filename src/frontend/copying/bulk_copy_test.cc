#include "frontend/copying/bulk_copy.hh"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace outboard::frontend {
namespace {

TEST(bulk_copy, every_byte_and_none_beside) {
  std::vector<std::uint8_t> from(4096);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  for (const std::size_t to_at : {0, 1, 31, 32, 63, 64, 65}) {
    for (const std::size_t from_at : {0, 1, 33, 64}) {
      for (const std::size_t size : {0, 1, 63, 64, 65, 127, 128, 129, 1000, 2048, 3333}) {
        std::vector<std::uint8_t> to(4096, 0xee);
        copy_past_caches(to.data() + to_at, from.data() + from_at, size);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= to_at && i < to_at + size;
          ASSERT_EQ(to[i], inside ? from[from_at + i - to_at] : 0xee)
              << to_at << " " << from_at << " " << size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace outboard::frontend
