#include "wire/cursor.hh"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace outboard::wire {
namespace {

struct padded {
  std::uint8_t small;
  std::uint32_t large;
};
static_assert(!raw_value<padded>, "padding would carry bytes of our memory to the peer");
static_assert(!raw_value<int*>);
static_assert(!raw_value<bool>, "a bool that is neither true nor false must not arise");
static_assert(raw_value<double> && raw_value<std::array<std::byte, 32>>);

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(cursor, writes_little_endian_without_padding) {
  std::vector<std::byte> out;
  writer w(out);
  w.put<std::uint8_t>(1);
  w.put<std::uint32_t>(0x05040302);
  w.put(true);
  w.text("ab");
  EXPECT_EQ(out, bytes_of({1, 2, 3, 4, 5, 1, 2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}));
}

TEST(cursor, reads_what_was_written) {
  std::vector<std::byte> out;
  writer w(out);
  w.put<std::int64_t>(-5);
  w.put(2.5);
  w.put(false);
  w.text("name");
  w.sized(bytes_of({9, 8}));
  reader r(out);
  EXPECT_EQ(r.get<std::int64_t>(), -5);
  EXPECT_EQ(r.get<double>(), 2.5);
  EXPECT_FALSE(r.flag());
  EXPECT_EQ(r.text(), "name");
  EXPECT_EQ(r.sized().size(), 2u);
  EXPECT_TRUE(r.finished());
}

TEST(cursor, patches_and_fills_room) {
  std::vector<std::byte> out;
  writer w(out);
  w.put<std::uint32_t>(0);
  const auto room = w.room(2);
  ASSERT_EQ(room.size(), 2u);
  room[0] = std::byte{7}, room[1] = std::byte{8};
  w.patch<std::uint32_t>(0, static_cast<std::uint32_t>(w.size()));
  EXPECT_EQ(out, bytes_of({6, 0, 0, 0, 7, 8}));
}

TEST(cursor, fails_for_good) {
  const auto five = bytes_of({1, 2, 3, 4, 5});
  reader r(five);
  EXPECT_EQ(r.get<std::uint64_t>(), 0u);  // three bytes short
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.get<std::uint8_t>(), 0u);  // five bytes are left
  EXPECT_TRUE(r.rest().empty());
  EXPECT_FALSE(r.finished());
}

TEST(cursor, nothing_left_is_not_finished_after_a_misfit) {
  reader r(std::span<const std::byte>{});
  EXPECT_TRUE(r.finished());
  EXPECT_TRUE(r.bytes(0).empty());
  EXPECT_TRUE(r.ok());
  r.fail();
  EXPECT_FALSE(r.finished());
}

TEST(cursor, left_over_is_not_finished) {
  const auto two = bytes_of({1, 2});
  reader r(two);
  (void)r.get<std::uint8_t>();
  EXPECT_TRUE(r.ok());
  EXPECT_FALSE(r.finished());
}

TEST(cursor, flag_is_zero_or_one) {
  for (int value = 0; value < 256; ++value) {
    const auto one = bytes_of({value});
    reader r(one);
    EXPECT_EQ(r.flag(), value == 1);
    EXPECT_EQ(r.ok(), value < 2) << value;
  }
}

/// Sizes near 2^64 would wrap in a careless comparison.
TEST(cursor, lengths_that_lie) {
  for (const std::uint64_t claimed : {3ull, 1ull << 32, 1ull << 62, ~0ull - 7, ~0ull}) {
    std::vector<std::byte> out;
    writer w(out);
    w.put(claimed);
    w.bytes(bytes_of({1, 2}));
    const std::span<const std::byte> behind_length = std::span<const std::byte>(out).subspan(8);
    reader by_size(out), by_text(out), direct(behind_length);
    EXPECT_TRUE(by_size.sized().empty());
    EXPECT_FALSE(by_size.ok()) << claimed;
    EXPECT_TRUE(by_text.text().empty());
    EXPECT_FALSE(by_text.ok()) << claimed;
    EXPECT_TRUE(direct.bytes(claimed).empty());
    EXPECT_FALSE(direct.ok()) << claimed;
  }
}

TEST(cursor, limits_hold_before_the_bytes_do) {
  std::vector<std::byte> out;
  writer w(out);
  w.text("four");
  reader within(out), above(out);
  EXPECT_EQ(within.text(4), "four");
  EXPECT_TRUE(within.finished());
  EXPECT_TRUE(above.text(3).empty());
  EXPECT_FALSE(above.ok());
}

TEST(cursor, arrays_whose_product_wraps) {
  const std::vector<std::byte> sixteen(16);
  reader good(sixteen);
  EXPECT_EQ(good.array<std::uint64_t>(2).size(), 16u);
  EXPECT_TRUE(good.finished());
  for (const std::uint64_t count : {3ull, (1ull << 61) + 1, ~0ull}) {
    reader r(sixteen);
    EXPECT_TRUE(r.array<std::uint64_t>(count).empty());
    EXPECT_FALSE(r.ok()) << count;
  }
}

}  // namespace
}  // namespace outboard::wire
