#include "marshal/piece_packing.hh"

#include <gtest/gtest.h>

#include <random>

namespace outboard::marshal {
namespace {

using std::chrono::nanoseconds;
using choice = packing_policy::choice;

constexpr std::size_t piece_size = 1u << 20;

/// What a line, a processor and some bytes are like; times in nanoseconds for each byte.
struct world {
  double line = 8;     ///< 125 MB/s
  double packing = 2;  ///< 500 MB/s
  double left = 0.5;   ///< of a byte
  double least = 0;    ///< what the other end takes for a byte of the program, packed or not
};

nanoseconds cost(double per_byte, double bytes) {
  return nanoseconds(static_cast<std::int64_t>(per_byte * bytes));
}

struct sums {
  double time = 0;
  int packed = 0, samples = 0;
};

sums send(packing_policy& policy, const world& w, int pieces) {
  sums sum;
  const double bytes = piece_size;
  for (int i = 0; i < pieces; ++i) {
    auto what = policy.next(piece_size);
    if (what == choice::sample) {
      ++sum.samples;
      policy.sampled(65536, static_cast<std::size_t>(65536 * w.left), cost(w.packing, 65536));
      sum.time += w.packing * 65536;
      what = policy.next(piece_size);
    }
    const bool packs = what == choice::packed;
    const double travel = packs ? bytes * w.left : bytes;
    const auto packing = cost(packs ? w.packing : 0, bytes);
    const auto sending = std::max(cost(w.line, travel), cost(w.least, bytes) - packing);
    policy.went(piece_size, static_cast<std::size_t>(travel), packing, sending);
    sum.time += static_cast<double>((packing + sending).count());
    sum.packed += packs;
  }
  return sum;
}

TEST(packing_policy, packs_what_a_slow_line_makes_worth_it) {
  packing_policy policy;
  const sums sum = send(policy, {}, 1000);
  EXPECT_GT(sum.packed, 950);
  EXPECT_EQ(sum.samples, 1);
}

TEST(packing_policy, leaves_alone_what_does_not_shrink) {
  packing_policy policy;
  const sums sum = send(policy, {.left = 0.99}, 1000);
  EXPECT_EQ(sum.packed, 0);
  EXPECT_LT(sum.samples, 10);
  EXPECT_LT(sum.time, 1.01 * 8 * piece_size * 1000);
}

TEST(packing_policy, leaves_a_fast_line_alone) {
  packing_policy policy;
  const sums fast = send(policy, {.line = 0.3, .left = 0.01}, 1000);
  EXPECT_EQ(fast.packed + fast.samples, 0);
  packing_policy other;
  const sums middling = send(other, {.line = 1, .packing = 2}, 1000);
  EXPECT_EQ(middling.packed, 0);
}

TEST(packing_policy, stops_where_the_other_end_is_what_takes_the_time) {
  packing_policy policy;
  const sums sum = send(policy, {.line = 4, .packing = 1, .least = 8}, 4000);
  EXPECT_LT(sum.packed, 250);
}

TEST(packing_policy, follows_what_changes) {
  packing_policy policy;
  send(policy, {.left = 0.99}, 300);
  EXPECT_GT(send(policy, {.left = 0.4}, 1000).packed, 700) << "the program copies other bytes now";
  EXPECT_LT(send(policy, {.line = 0.3, .left = 0.4}, 1000).packed, 50) << "the line has become fast";
}

TEST(packing_policy, does_not_touch_small_pieces) {
  packing_policy policy;
  send(policy, {}, 100);
  EXPECT_EQ(policy.next(16u << 10), choice::plain);
  EXPECT_EQ(policy.next(piece_size), choice::packed);
}

std::vector<std::byte> numbers(std::size_t size, unsigned range) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() % range);
  return bytes;
}

/// A packer whose line carries 10 MB/s. On a busy machine packing may seem slower than that for once: the
/// last time counts that it packed at all.
std::vector<std::byte> packed(piece_packer& packer, std::span<const std::byte> piece) {
  std::vector<std::byte> last;
  for (int i = 0; i < 10; ++i) {
    const std::span<const std::byte> made = packer.pack(piece);
    if (!made.empty()) last.assign(made.begin(), made.end());
    const std::size_t size = made.empty() ? piece.size() : made.size();
    packer.went(size, cost(100, static_cast<double>(size)));
  }
  return last;
}

TEST(piece_packing, comes_back_as_it_was) {
  piece_packer packer;
  for (const std::size_t size : {piece_size, std::size_t{40000}, std::size_t{65537}}) {
    const auto piece = numbers(size, 5);
    const auto made = packed(packer, piece);
    ASSERT_FALSE(made.empty());
    EXPECT_LT(made.size(), size * 3 / 4);
    EXPECT_EQ(packed_size(made), size);
    std::vector<std::byte> back(size);
    EXPECT_TRUE(unpack_piece(made, back));
    EXPECT_EQ(back, piece);
  }
  EXPECT_TRUE(packed(packer, numbers(piece_size, 256)).empty());
}

TEST(piece_packing, refuses_other_sizes_and_damage) {
  piece_packer packer;
  const auto piece = numbers(65536, 3);
  auto made = packed(packer, piece);
  ASSERT_FALSE(made.empty());
  std::vector<std::byte> back(piece.size());
  EXPECT_FALSE(unpack_piece(made, std::span(back).first(65535)));
  EXPECT_FALSE(unpack_piece({}, back));
  EXPECT_FALSE(unpack_piece(std::span(made).first(4), back));
  EXPECT_FALSE(unpack_piece(std::span(made).first(made.size() - 1), back));
  for (std::size_t bit = 0; bit < 32; ++bit) {
    made[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(unpack_piece(made, back)) << bit;
    made[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  // Behind it nothing may be read or written beyond the ends, which the sanitizers watch.
  for (std::size_t bit = 32; bit < made.size() * 8; bit += 41) {
    made[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    unpack_piece(made, back);
    made[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  EXPECT_TRUE(unpack_piece(made, back));
}

}  // namespace
}  // namespace outboard::marshal
