#include "marshal/cuda/late_words.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "marshal/cuda/memory_changes_testing.hh"

namespace outboard::marshal {
namespace {

constexpr std::size_t page = 4096, no_limit = ~std::size_t{0} >> 1;
using bytes = std::vector<std::byte>;

/// Memory that is looked at while somebody writes it: `write` is called before each look.
struct looked_at {
  bytes memory = bytes(page), shadow = bytes(page), out;
  late_words late;

  void put(std::size_t line, std::size_t word, std::uint64_t value) {
    std::memcpy(memory.data() + line * change_line + word * sizeof value, &value, sizeof value);
  }
  template <class Write>
  std::vector<std::uint64_t> look_again_and_again(const Write& write) {
    int looks = 0;
    late.begin_looks();
    do {
      write(looks++);
      find_changes(base, memory, shadow, 0, no_limit, no_limit, out, {}, &late);
    } while (late.another_look());
    append_words(late, out);
    return lines_in_order(out);
  }
};

/// A number that counts, written while the others were looked at, may be what a flag behind it stands for.
TEST(LateWords, what_a_later_look_finds_comes_before_the_flags_behind_it) {
  looked_at m;
  const auto order = m.look_again_and_again([&](int look) {
    if (look == 0) m.put(16, 0, 1);  // the flag; the first look has passed the data by
    if (look == 1)
      m.put(3, 0, 1), m.put(20, 0, 1);  // no data of that flag: the first look would have seen it
  });
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 16, 20}));
}

/// The line of a table that somebody was in the middle of writing looks like a word.
TEST(LateWords, a_line_caught_half_written_goes_whole_before_the_flag_behind_it) {
  for (const std::uint64_t step : {1ull, 0x1234567ull}) {
    looked_at m;
    const auto order = m.look_again_and_again([&](int look) {
      if (look == 0) m.put(5, 0, step), m.put(9, 0, 1);
      if (look == 1) m.put(5, 1, step), m.put(5, 2, step);
    });
    EXPECT_EQ(order, (std::vector<std::uint64_t>{5, 9}));
    EXPECT_EQ(m.shadow, m.memory);
  }
}

TEST(LateWords, a_line_caught_half_written_goes_whole_in_spite_of_what_moves_all_the_time) {
  looked_at m;
  const auto order = m.look_again_and_again([&](int look) {
    m.put(1, 0, static_cast<std::uint64_t>(look) + 1);
    if (look == 6) m.put(5, 0, 0x1234567), m.put(9, 0, 1);  // the last look at words
    if (look == 7) m.put(5, 1, 0x1234567);
    ASSERT_LE(look, 7);
  });
  EXPECT_EQ(order, (std::vector<std::uint64_t>{5, 1, 9}));
}

TEST(LateWords, nothing_is_looked_at_again_where_nothing_has_changed) {
  looked_at m;
  int looks = 0;
  EXPECT_TRUE(m.look_again_and_again([&](int look) { looks = look + 1; }).empty());
  EXPECT_EQ(looks, 1);
}

TEST(LateWords, what_was_given_away_is_taken_again) {
  looked_at m;
  m.late.begin_looks();
  m.put(1, 0, 1);
  find_changes(base, m.memory, m.shadow, 0, no_limit, no_limit, m.out, {}, &m.late);
  EXPECT_EQ(m.late.size(), size_alone({{}, change_line, 1}));
  append_words(m.late, m.out);
  EXPECT_EQ(m.late.size(), 0u);
  m.put(1, 0, 2);
  find_changes(base, m.memory, m.shadow, 0, no_limit, no_limit, m.out, {}, &m.late);
  append_words(m.late, m.out);
  EXPECT_EQ(lines_in_order(m.out), (std::vector<std::uint64_t>{1, 1}));
}

/// One who writes rounds of data, each with its flag, and waits until the other end has seen it.
class writer {
 public:
  /// `step`: by which its flag moves on.
  writer(bytes& memory, std::mt19937& random, std::uint64_t step)
      : memory_(memory), random_(random), step_(step) {
    flag_ = random_() % lines_of(memory);
  }

  std::uint64_t round() const { return round_; }
  std::uint64_t flag() const { return base + flag_ * change_line; }  ///< its address
  bool raised(const bytes& there) const {
    std::uint64_t value = 0;
    std::memcpy(&value, there.data() + flag_ * change_line, sizeof value);
    return value == round_ * step_;
  }
  static std::uint64_t number(std::uint64_t round) { return round * 0x9e37'79b9'7f4a'7c15; }

  void begin_round() {
    ++round_;
    stores_.clear();
    std::vector<std::size_t> lines(lines_of(memory_));
    std::iota(lines.begin(), lines.end(), 0);
    if (random_() % 2) std::ranges::shuffle(lines, random_);
    for (const std::size_t line : lines) {
      if (line == flag_ || random_() % 3) continue;
      const std::size_t words = std::size_t{1} << random_() % 4;
      for (std::size_t w = 0; w < words; ++w) stores_.push_back(line * change_line + 8 * w);
    }
    next_ = 0;
  }
  /// Some stores, in the order of the program; the flag is the last.
  void step() {
    for (std::size_t n = random_() % 40; n > 0 && next_ <= stores_.size(); --n, ++next_) {
      if (next_ == stores_.size()) {
        const std::uint64_t value = round_ * step_;
        std::memcpy(memory_.data() + flag_ * change_line, &value, sizeof value);
        continue;
      }
      const std::uint64_t value = number(round_);
      std::memcpy(memory_.data() + stores_[next_], &value, sizeof value);
    }
  }
  /// The round's data are there.
  bool arrived(const bytes& there) const {
    for (const std::size_t at : stores_) {
      std::uint64_t value = 0;
      std::memcpy(&value, there.data() + at, sizeof value);
      if (value != number(round_)) return false;
    }
    return true;
  }

 private:
  static std::size_t lines_of(const bytes& memory) { return memory.size() / change_line; }

  bytes& memory_;
  std::mt19937& random_;
  std::uint64_t step_;
  std::size_t flag_ = 0, next_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::size_t> stores_;
};

/// `known`: the other end knows the flag, and stores it behind all others.
void exchange_rounds(unsigned seed, std::uint64_t step, bool known) {
  std::mt19937 random(seed);
  bytes here(8 * page), shadow(here.size()), there(here.size());
  writer w(here, random, step);
  const std::uint64_t flag = w.flag();
  const std::span<const std::uint64_t> last(&flag, known ? 1 : 0);
  late_words late;
  for (int round = 0; round < 20; ++round) {
    const auto in_order = [&] { return !w.raised(there) || w.arrived(there); };
    w.begin_round();
    for (int exchanges = 0; !w.raised(there); ++exchanges) {
      ASSERT_LT(exchanges, 1000);
      bytes out;
      late.begin_looks();
      do {
        for (std::size_t at = 0; at < here.size(); w.step())
          at = find_changes(base, here, shadow, at, no_limit, page, out, {}, &late);
      } while (late.another_look());
      append_words(late, out);
      // Masked lines come behind whole ones: each run alone, in that order, is what somebody may see.
      const auto target = [&](std::uint64_t address) -> std::optional<change_target> {
        EXPECT_TRUE(in_order()) << "seed " << seed << " round " << round;
        return change_target{std::span(there).subspan(address - base), {}};
      };
      ASSERT_TRUE(apply_changes(out, target, last));
      ASSERT_TRUE(in_order()) << "seed " << seed << " round " << round;
    }
    ASSERT_EQ(here, there);
  }
}

TEST(LateWords, whoever_sees_a_flag_that_counts_sees_the_data) {
  for (unsigned seed = 0; seed < 80; ++seed) exchange_rounds(seed, 1, false);
}

/// A stream may write any number into its word.
TEST(LateWords, whoever_sees_a_named_word_sees_the_data) {
  for (unsigned seed = 0; seed < 80; ++seed) exchange_rounds(seed, 4711, true);
}

/// Copies, fills and words, one over the other, while looks go over the memory: a line that several looks
/// have met, in part and whole, arrives as the last one saw it.
TEST(LateWords, a_line_that_is_written_again_and_again_arrives_as_it_is) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    bytes here(4 * page), shadow(here.size()), there(here.size()), there_shadow(here.size());
    late_words late;
    const auto write = [&] {
      const std::size_t begin = random() % here.size(), end = begin + random() % (here.size() - begin);
      const unsigned first = random(), step = random() % 3;
      for (std::size_t i = begin; i < end; ++i) here[i] = std::byte(first + step * 7 * i);
    };
    const auto write_word = [&] { here[random() % here.size() / 8 * 8] ^= std::byte(random() % 255 + 1); };
    const auto exchange = [&](bool written) {
      bytes out;
      late.begin_looks();
      do {
        for (std::size_t at = 0; at < here.size();) {
          if (written && random() % 4 == 0) random() % 4 ? write_word() : write();
          at = find_changes(base, here, shadow, at, no_limit, page, out, {}, &late);
        }
      } while (late.another_look());
      append_words(late, out);
      const auto target = [&](std::uint64_t address) -> std::optional<change_target> {
        return change_target{std::span(there).subspan(address - base),
                             std::span(there_shadow).subspan(address - base)};
      };
      return apply_changes(out, target);
    };
    for (int n = 0; n < 5; ++n) ASSERT_TRUE(exchange(true));
    ASSERT_TRUE(exchange(false));
    ASSERT_TRUE(there == here) << "seed " << seed;
    ASSERT_TRUE(there_shadow == shadow) << "seed " << seed;
  }
}

}  // namespace
}  // namespace outboard::marshal
