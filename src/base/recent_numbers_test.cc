#include "base/recent_numbers.hh"

#include <gtest/gtest.h>

#include <thread>

namespace outboard {
namespace {

TEST(recent_numbers, a_number_is_known_until_a_later_one_takes_its_place) {
  recent_numbers<std::uint64_t> known(1000);
  EXPECT_EQ(known.find(7), 0u);
  EXPECT_EQ(known.find(0), 0u);
  known.note(7, 70);
  known.note(8, 80);
  EXPECT_EQ(known.find(7), 70u);
  EXPECT_EQ(known.find(8), 80u);
  known.note(1007, 90);
  EXPECT_EQ(known.find(7), 0u);
  EXPECT_EQ(known.find(1007), 90u);
  EXPECT_EQ(known.find(8), 80u);
}

TEST(recent_numbers, a_reader_beside_the_writer_finds_the_right_value_or_none) {
  recent_numbers<std::uint64_t> known(16);
  constexpr std::uint64_t last = 200'000;
  std::thread writer([&] {
    for (std::uint64_t n = 1; n <= last; ++n) known.note(n, n * 3);
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t n = 1; n <= last; ++n) {
    const std::uint64_t value = known.find(n);
    wrong += value != 0 && value != n * 3;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(known.find(last), last * 3);
}

}  // namespace
}  // namespace outboard
