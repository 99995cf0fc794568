#include "marshal/cuda/memory_changes.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "marshal/cuda/memory_changes_testing.hh"

namespace outboard::marshal {
namespace {

using bytes = std::vector<std::byte>;

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

TEST(MemoryChanges, arrive_and_only_once) {
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

TEST(MemoryChanges, leave_what_the_other_end_wrote_beside_them) {
  two_ends b(4096);
  b.here[10] = std::byte(1);
  b.there[9] = b.there[11] = std::byte(2);
  ASSERT_TRUE(b.apply(b.changes()));
  EXPECT_EQ(b.there[9], std::byte(2));
  EXPECT_EQ(b.there[10], std::byte(1));
  EXPECT_EQ(b.there[11], std::byte(2));
}

TEST(MemoryChanges, of_a_block_that_is_gone_are_passed_by) {
  two_ends gone(4096), b(4096);
  std::fill(gone.here.begin(), gone.here.begin() + 100, std::byte(3));  // a whole line, and part of one
  b.here[10] = std::byte(1);
  bytes all = gone.changes();
  constexpr std::uint64_t elsewhere = base + (1u << 20);
  bytes kept;
  for (std::size_t at = 0; at < b.here.size();)
    at = find_changes(elsewhere, b.here, b.here_shadow, at, ~0ull >> 1, ~0ull >> 1, kept);
  all.insert(all.end(), kept.begin(), kept.end());
  const auto target = [&](std::uint64_t address) -> std::optional<change_target> {
    if (address < elsewhere) return change_target{.memory = {}, .shadow = {}, .gone = true};
    return change_target{std::span(b.there).subspan(address - elsewhere), {}};
  };
  ASSERT_TRUE(apply_changes(all, target));
  EXPECT_EQ(b.there, b.here);
  all.resize(20);
  EXPECT_FALSE(apply_changes(all, target));
}

TEST(MemoryChanges, come_in_parts_when_output_or_work_is_limited) {
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

TEST(MemoryChanges, dense_ones_cost_an_eighth_more_at_most) {
  two_ends b(1 << 20);
  std::mt19937 random(1);
  for (std::byte& value : b.here) value = std::byte(random());
  EXPECT_LT(b.changes().size(), (1u << 20) * 9 / 8);
}

TEST(MemoryChanges, every_flipped_bit_is_refused_or_stays_inside_the_block) {
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

void put(bytes& memory, std::size_t line, std::uint32_t value) {
  std::memcpy(memory.data() + line * change_line, &value, sizeof value);
}

TEST(MemoryChanges, words_that_look_like_flags_come_last) {
  two_ends b(64 * change_line);
  const auto sent = [&] {
    bytes out;
    late_words late;
    for (std::size_t at = 0; at < b.here.size();)
      at = find_changes(base, b.here, b.here_shadow, at, ~0ull >> 1, ~0ull >> 1, out, {}, &late);
    append_words(late, out);
    EXPECT_TRUE(b.apply(out));
    EXPECT_EQ(b.here, b.there);
    return lines_in_order(out);
  };
  put(b.here, 0, 1);      // a flag
  put(b.here, 9, 12345);  // data
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{9, 0}));
  put(b.here, 0, 2);
  put(b.here, 9, 12346 + 900);
  put(b.here, 20, 0x10000);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{9, 20, 0}));
  for (std::size_t line = 30; line < 34; ++line) put(b.here, line, 1);  // a table that counts, and a word
  put(b.here, 25, 4711);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{30, 31, 32, 33, 25}));
  put(b.here, 0, 1);  // back: no count
  put(b.here, 9, 7);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{0, 9}));
}

TEST(MemoryChanges, named_words_come_last_at_both_ends) {
  two_ends b(64 * change_line);
  const std::uint64_t word = base + change_line * 3 + 8;
  late_words late;
  late.name(std::span(&word, 1));
  std::memset(b.here.data() + 3 * change_line, 9, change_line);
  put(b.here, 5, 999);
  bytes out;
  find_changes(base, b.here, b.here_shadow, 0, ~0ull >> 1, ~0ull >> 1, out, {}, &late);
  EXPECT_TRUE(out.empty());
  append_words(late, out);
  EXPECT_EQ(lines_in_order(out), (std::vector<std::uint64_t>{5, 3}));
  // The receiver's own order: the last pass stores nothing but what is named.
  b.there.assign(b.there.size(), std::byte{0});
  const std::size_t second = out.size() - size_alone(changed_line{{}, change_line, ~0ull});
  bytes both(out.begin() + static_cast<std::ptrdiff_t>(second), out.end());
  both.insert(both.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(second));
  bytes stored_before_last;
  std::size_t asked = 0;
  const auto target = [&](std::uint64_t address) -> std::optional<change_target> {
    if (asked++ == 4) stored_before_last = b.there;  // two runs, looked at in each of three passes
    return change_target{std::span(b.there).subspan(address - base), {}};
  };
  ASSERT_TRUE(apply_changes(both, target, std::span(&word, 1)));
  EXPECT_EQ(asked, 6u);
  ASSERT_EQ(stored_before_last.size(), b.there.size());
  EXPECT_EQ(stored_before_last[3 * change_line], std::byte{0});
  EXPECT_NE(stored_before_last[5 * change_line], std::byte{0});
  EXPECT_EQ(b.there, b.here);
}

TEST(MemoryChanges, refuse_what_leaves_its_block) {
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

TEST(FindAddresses, sees_aligned_words_in_the_range_and_no_others) {
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

TEST(FindAddresses, sees_them_in_changes_too) {
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
