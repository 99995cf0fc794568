#include "marshal/cuda/memory_changes.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace outboard::marshal {
namespace {

using bytes = std::vector<std::byte>;
constexpr std::uint64_t base = 0x2080'0000'1000;

/// Both ends of one block: each has its memory and its shadow.
struct two_ends {
  explicit two_ends(std::size_t size) : here(size), here_shadow(size), there(size), there_shadow(size) {}
  bytes here, here_shadow, there, there_shadow;

  bool apply(std::span<const std::byte> changes) {
    return apply_changes(changes, [&](std::uint64_t address) -> std::optional<change_target> {
      if (address < base || address - base >= there.size()) return std::nullopt;
      return change_target{std::span(there).subspan(address - base),
                           std::span(there_shadow).subspan(address - base)};
    });
  }
  bytes changes(std::size_t most = ~0ull >> 1, std::size_t budget = ~0ull >> 1) {
    bytes out;
    for (std::size_t at = 0; at < here.size();)
      at = find_changes(base, here, here_shadow, at, most, budget, out);
    return out;
  }
};

TEST(memory_changes, arrive_and_only_once) {
  for (const std::size_t size : {1u, 63u, 64u, 65u, 4096u, 5000u, 70000u}) {
    two_ends b(size);
    std::mt19937 random(static_cast<unsigned>(size));
    for (int round = 0; round < 20; ++round) {
      for (std::size_t n = random() % (size + 1); n > 0; --n) b.here[random() % size] = std::byte(random());
      const bytes sent = b.changes();
      ASSERT_TRUE(b.apply(sent)) << size;
      EXPECT_EQ(b.here, b.there);
      EXPECT_EQ(b.here_shadow, b.there_shadow);
      EXPECT_TRUE(b.changes().empty());
    }
  }
}

TEST(memory_changes, leave_what_the_other_end_wrote_beside_them) {
  two_ends b(4096);
  b.here[10] = std::byte(1);
  b.there[9] = b.there[11] = std::byte(2);
  ASSERT_TRUE(b.apply(b.changes()));
  EXPECT_EQ(b.there[9], std::byte(2));
  EXPECT_EQ(b.there[10], std::byte(1));
  EXPECT_EQ(b.there[11], std::byte(2));
}

TEST(memory_changes, come_in_parts_when_output_or_work_is_limited) {
  two_ends b(1 << 20);
  for (std::size_t i = 0; i < b.here.size(); i += 3) b.here[i] = std::byte(i * 7 + 1);
  bytes out;
  int parts = 0;
  for (std::size_t at = 0; at < b.here.size(); ++parts) {
    const std::size_t before = out.size();
    at = find_changes(base, b.here, b.here_shadow, at, 10000, 1 << 17, out);
    EXPECT_LE(out.size() - before, 10000u + 4096 * 2);
  }
  EXPECT_GT(parts, 20);
  ASSERT_TRUE(b.apply(out));
  EXPECT_EQ(b.here, b.there);
}

TEST(memory_changes, dense_ones_cost_an_eighth_more_at_most) {
  two_ends b(1 << 20);
  std::mt19937 random(1);
  for (std::byte& value : b.here) value = std::byte(random());
  EXPECT_LT(b.changes().size(), (1u << 20) * 9 / 8);
}

TEST(memory_changes, every_flipped_bit_is_refused_or_stays_inside_the_block) {
  two_ends b(300);
  b.here[0] = b.here[70] = b.here[299] = std::byte(5);
  std::fill_n(b.here.begin() + 128, 64, std::byte(9));
  const bytes sent = b.changes();
  for (std::size_t bit = 0; bit < sent.size() * 8; ++bit) {
    bytes wrong = sent;
    wrong[bit / 8] ^= std::byte(1u << bit % 8);
    two_ends other(300);
    (void)other.apply(wrong);  // ASan sees what leaves the block
  }
  for (std::size_t n = 0; n < sent.size(); ++n) {
    two_ends other(300);
    (void)other.apply(std::span(sent).first(n));
  }
}

TEST(memory_changes, refuse_what_leaves_its_block) {
  two_ends b(100);
  b.here[99] = std::byte(1);
  bytes sent = b.changes();
  ASSERT_TRUE(b.apply(sent));
  std::uint64_t mask = 1ull << 36;  // byte 64 + 36 = 100
  std::memcpy(sent.data() + 13, &mask, 8);
  EXPECT_FALSE(b.apply(sent));
  const std::uint64_t beyond = base + 100;
  std::memcpy(sent.data(), &beyond, 8);
  EXPECT_FALSE(b.apply(sent));
}

TEST(find_addresses, sees_aligned_words_in_the_range_and_no_others) {
  bytes data(10000, std::byte(0xee));
  const auto put = [&](std::size_t at, std::uint64_t value) { std::memcpy(data.data() + at, &value, 8); };
  put(8, base), put(4096, base + 99), put(9992, base + 50), put(16, base + 100), put(24, base - 1),
      put(33, base);
  std::vector<std::uint64_t> seen;
  find_addresses(data, 8, {base, 100, &seen});
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{base, base + 99, base + 50}));
  seen.clear();
  find_addresses(std::span(data).subspan(1, 50), 1, {base, 100, &seen});
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{base, base}));
  find_addresses(std::span(data).first(7), 1, {0, ~0ull, &seen});
  EXPECT_EQ(seen.size(), 2u);
}

TEST(find_addresses, sees_them_in_changes_too) {
  two_ends b(4096);
  const std::uint64_t pointer = base + 8;
  std::memcpy(b.here.data() + 1024, &pointer, 8);
  std::vector<std::uint64_t> seen;
  bytes out;
  find_changes(base, b.here, b.here_shadow, 0, 1 << 20, 1 << 20, out, {base, 100, &seen});
  EXPECT_EQ(seen, std::vector<std::uint64_t>{pointer});
}

}  // namespace
}  // namespace outboard::marshal
