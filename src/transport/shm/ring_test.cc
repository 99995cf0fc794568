#include "transport/shm/ring.hh"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

// The views of one direction, without a connection: order, wrapping, marks, and words that lie.
namespace outboard::transport::shm {
namespace {

constexpr std::size_t size = 256;

struct direction {
  std::unique_ptr<ring_words> words = std::make_unique<ring_words>();
  std::array<std::byte, size> bytes{};
  ring_writer out{*words, bytes};
  ring_reader in{*words, bytes};
};

std::vector<std::byte> counted(std::size_t from, std::size_t count) {
  std::vector<std::byte> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>((from + i) * 7 + (from + i) / 256);
  return made;
}

TEST(ring, carries_bytes_in_order_around_its_end) {
  direction d;
  std::mt19937 random(1);
  std::size_t sent = 0, got = 0;
  while (got < 100000) {
    d.out.fetch_ahead();  // changes nothing, nor reaches beyond the end
    sent += d.out.put(counted(sent, random() % (2 * size)));
    if (random() % 2) d.out.publish();
    std::vector<std::byte> into(random() % (2 * size));
    const std::size_t n = d.in.take(into);
    into.resize(n);
    ASSERT_EQ(into, counted(got, n));
    got += n;
    ASSERT_LE(sent - got, size);
  }
  EXPECT_FALSE(d.in.broken() || d.out.broken());
}

TEST(ring, other_views_go_on_where_these_stand) {
  direction d;
  auto out = std::make_unique<ring_writer>(*d.words, d.bytes);
  auto in = std::make_unique<ring_reader>(*d.words, d.bytes);
  std::mt19937 random(2);
  std::size_t sent = 0, got = 0;
  while (got < 100000) {
    sent += out->put(counted(sent, random() % (2 * size)));
    out->publish();
    if (random() % 4 == 0) {
      const ring_place place = out->place();
      out = std::make_unique<ring_writer>(*d.words, d.bytes);
      ASSERT_TRUE(out->go_on(place));
    }
    std::vector<std::byte> into(random() % (2 * size));
    const std::size_t n = in->take(into);
    into.resize(n);
    ASSERT_EQ(into, counted(got, n));
    got += n;
    if (random() % 4 == 0) {
      const ring_place place = in->place();
      in = std::make_unique<ring_reader>(*d.words, d.bytes);
      ASSERT_TRUE(in->go_on(place));
    }
    ASSERT_LE(sent - got, size);
  }
}

TEST(ring, nobody_goes_on_where_the_other_end_cannot_be) {
  direction d;
  ASSERT_EQ(d.out.put(counted(0, size)), size);
  d.out.publish();
  EXPECT_FALSE(ring_reader(*d.words, d.bytes).go_on({size + 1, 0})) << "behind what was written";
  d.words->head.store(size + 1);
  EXPECT_FALSE(ring_writer(*d.words, d.bytes).go_on({size, 0})) << "more was read than written";
  d.words->head.store(0);
  EXPECT_FALSE(ring_writer(*d.words, d.bytes).go_on({2 * size + 1, 0})) << "more was written than fits";
  EXPECT_FALSE(ring_writer(*d.words, d.bytes).go_on({0, 1000})) << "fewer descriptors were taken";
}

TEST(ring, shows_nothing_before_it_is_published) {
  direction d;
  std::array<std::byte, 8> into;
  EXPECT_EQ(d.out.put(counted(0, 5)), 5u);
  EXPECT_FALSE(d.in.readable());
  EXPECT_EQ(d.in.take(into), 0u);
  EXPECT_FALSE(d.out.publish());
  EXPECT_TRUE(d.in.readable());
  EXPECT_EQ(d.in.take(into), 5u);
}

TEST(ring, a_full_one_takes_nothing_and_goes_on) {
  direction d;
  EXPECT_EQ(d.out.put(counted(0, 2 * size)), size);
  EXPECT_FALSE(d.out.has_room());
  d.out.publish();
  std::array<std::byte, 10> into;
  EXPECT_EQ(d.in.take(into), 10u);
  EXPECT_TRUE(d.out.has_room());
  EXPECT_EQ(d.out.put(counted(size, size)), 10u);
}

TEST(ring, tells_a_writer_that_the_reader_sleeps_once) {
  direction d;
  d.in.lie_down();
  d.out.put(counted(0, 1));
  EXPECT_TRUE(d.out.publish());
  d.out.put(counted(1, 1));
  EXPECT_FALSE(d.out.publish());
}

TEST(ring, wakes_a_writer_when_a_quarter_is_free) {
  direction d;
  d.out.put(counted(0, size));
  d.out.publish();
  d.out.lie_down();
  std::array<std::byte, size / 4> into;
  EXPECT_EQ(d.in.take(std::span(into).first(1)), 1u);
  EXPECT_FALSE(d.in.writer_waits());
  EXPECT_EQ(d.in.take(into), into.size());
  EXPECT_TRUE(d.in.writer_waits());
}

TEST(ring, stops_at_every_mark) {
  direction d;
  std::array<std::byte, size> into;
  for (int round = 0; round < 50; ++round) {
    for (int marks = 0; marks < 3; ++marks) {
      d.out.put(counted(0, 3));
      ASSERT_TRUE(d.out.can_mark());
      d.out.mark();
      d.out.put(counted(9, 1));
    }
    d.out.publish();
    for (int marks = 0; marks < 3; ++marks) {
      ASSERT_EQ(d.in.take(into), 3u);
      ASSERT_EQ(d.in.take(into), 0u);
      ASSERT_TRUE(d.in.readable());
      ASSERT_TRUE(d.in.at_mark());
      ASSERT_EQ(d.in.take_mark(), counted(9, 1)[0]);
      ASSERT_FALSE(d.in.at_mark());
    }
    ASSERT_FALSE(d.in.readable());
  }
  for (std::size_t i = 0; i < most_descriptors; ++i) {
    ASSERT_TRUE(d.out.can_mark());
    d.out.mark();
    d.out.put(counted(9, 1));
  }
  EXPECT_FALSE(d.out.can_mark());
  d.out.publish();
  EXPECT_EQ(d.in.take(into), 0u);
  d.in.take_mark();
  EXPECT_TRUE(d.out.can_mark());
}

/// Uses both views in every way; the other side's words may say anything meanwhile.
void use(direction& d) {
  std::array<std::byte, size> into;
  for (int i = 0; i < 4; ++i) {
    if (d.out.can_mark()) d.out.mark();
    const std::size_t put = d.out.put(counted(0, 100));
    ASSERT_LE(put, size);
    d.out.publish();
    ASSERT_LE(d.in.take(into), size);
    if (d.in.readable() && d.in.at_mark()) (void)d.in.take_mark();
    (void)d.in.writer_waits();
  }
}

// The sanitizers see a copy outside of the ring; besides, what is broken stays so and moves nothing.
TEST(ring, no_flipped_bit_leads_outside) {
  constexpr std::size_t bits = sizeof(ring_words) * 8;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    direction d;
    use(d);
    auto* raw = reinterpret_cast<unsigned char*>(d.words.get());
    raw[bit / 8] = static_cast<unsigned char>(raw[bit / 8] ^ (1u << (bit % 8)));
    use(d);
    if (!d.in.broken()) continue;
    std::array<std::byte, size> into;
    ASSERT_EQ(d.in.take(into), 0u);
    ASSERT_FALSE(d.in.readable());
  }
}

TEST(ring, random_words_lead_nowhere) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    direction d;
    use(d);
    const std::uint64_t near = random() % (4 * size), far = random();
    const std::uint64_t value = random() % 2 ? near : far;
    switch (random() % 5) {
      case 0:
        d.words->tail.store(value);
        break;
      case 1:
        d.words->head.store(value);
        break;
      case 2:
        d.words->descriptors_sent.store(value % 256);
        break;
      case 3:
        d.words->descriptors_taken.store(value % 256);
        break;
      default:
        for (auto& at : d.words->descriptor_at) at.store(value);
    }
    use(d);
  }
}

TEST(ring, a_position_that_goes_back_or_too_far_breaks_the_view) {
  for (std::uint64_t lie : {std::uint64_t{9}, std::uint64_t{10 + size + 1}, ~std::uint64_t{0}}) {
    direction d;
    std::array<std::byte, 10> into;
    d.out.put(counted(0, 10));
    d.out.publish();
    ASSERT_EQ(d.in.take(into), 10u);
    d.words->tail.store(lie);
    EXPECT_FALSE(d.in.readable());
    EXPECT_TRUE(d.in.broken()) << lie;
  }
  for (std::uint64_t lie : {std::uint64_t{9}, std::uint64_t{11 + size}, ~std::uint64_t{0}}) {
    direction d;
    std::array<std::byte, 10> into;
    d.out.put(counted(0, 10));
    d.out.publish();
    ASSERT_EQ(d.in.take(into), 10u);
    EXPECT_EQ(d.out.put(counted(0, size)), size);  // has looked at the head
    d.out.publish();
    d.words->head.store(lie);
    EXPECT_FALSE(d.out.has_room());
    EXPECT_TRUE(d.out.broken()) << lie;
    EXPECT_EQ(d.out.put(counted(0, 1)), 0u);
  }
}

}  // namespace
}  // namespace outboard::transport::shm
