#include "marshal/cuda/launch_bodies.hh"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "marshal/body_testing.hh"

namespace outboard::marshal {
namespace {

using testing::rewritten;

/// A launch in which every field differs from the others and from zero, and the memory that it points to.
struct sample {
  std::vector<launch_attribute> attributes;
  std::vector<std::byte> parameters;
  launch_body body;

  sample() {
    for (std::uint32_t id : {4u, 7u}) {
      attributes.push_back({.id = id});
      for (std::size_t i = 0; i < 64; ++i)
        attributes.back().value[i] = static_cast<std::uint8_t>(id * 10 + i);
    }
    for (int i = 1; i <= 21; ++i) parameters.push_back(static_cast<std::byte>(i));
    body = {.head = {.kernel = 0x1111,
                     .stream = 0x2222,
                     .grid = {1, 2, 3},
                     .block = {4, 5, 6},
                     .shared = 7,
                     .per_thread = true,
                     .cooperative = true,
                     .extended = true},
            .attributes = std::span<const launch_attribute>(attributes),
            .parameters = std::span<const std::byte>(parameters)};
  }
};

void expect_same(const launch_head& a, const launch_head& b) {
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.grid, b.grid);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.shared, b.shared);
  EXPECT_EQ(a.per_thread, b.per_thread);
  EXPECT_EQ(a.cooperative, b.cooperative);
  EXPECT_EQ(a.extended, b.extended);
}

TEST(launch_body, comes_back_as_it_was_written_and_lies_in_the_frame) {
  const sample sent;
  const std::vector<std::byte> frame = payload_of(sent.body);
  wire::reader r(frame);
  const auto read = take_body<launch_body>(r);
  ASSERT_TRUE(r.finished());
  expect_same(read.head, sent.body.head);
  ASSERT_EQ(read.attributes.size(), sent.attributes.size());
  for (std::size_t i = 0; i < read.attributes.size(); ++i) {
    EXPECT_EQ(read.attributes[i].id, sent.attributes[i].id);
    EXPECT_EQ(read.attributes[i].value, sent.attributes[i].value);
  }
  const auto shown = read.parameters.shown();
  EXPECT_TRUE(std::equal(shown.begin(), shown.end(), sent.parameters.begin(), sent.parameters.end()));
  EXPECT_EQ(shown.data(), frame.data() + frame.size() - sent.parameters.size());
}

TEST(launch_body, begins_with_its_head) {
  const sample sent;
  const std::vector<std::byte> frame = payload_of(sent.body), head = payload_of(sent.body.head);
  ASSERT_LT(head.size(), frame.size());
  EXPECT_TRUE(std::equal(head.begin(), head.end(), frame.begin()));
  wire::reader r(frame);
  expect_same(take_body<launch_head>(r), sent.body.head);
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.rest().size(), frame.size() - head.size());
}

TEST(launch_body, is_malformed_wherever_it_is_cut_short_or_goes_on) {
  std::vector<std::byte> frame = payload_of(sample().body);
  for (std::size_t n = 0; n < frame.size(); ++n) {
    EXPECT_FALSE(rewritten<launch_body>(std::span<const std::byte>(frame).first(n))) << n;
  }
  ASSERT_TRUE(rewritten<launch_body>(frame));
  frame.push_back(std::byte{0});
  EXPECT_FALSE(rewritten<launch_body>(frame));
}

TEST(launch_body, with_a_bit_flipped_says_so_or_is_malformed) {
  const std::vector<std::byte> frame = payload_of(sample().body);
  std::size_t malformed = 0;
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    std::vector<std::byte> damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto again = rewritten<launch_body>(damaged);
    if (!again) {
      ++malformed;
    } else {
      EXPECT_EQ(*again, damaged) << bit;  // reading and writing lose nothing
    }
  }
  EXPECT_EQ(malformed, 3 * 7u + 2 * 64u);  // all bits but one of each flag, all bits of both counts
}

TEST(launch_body, has_limits) {
  std::vector<launch_attribute> many(max_launch_attributes);
  std::vector<std::byte> large(max_parameter_bytes);
  const auto read = [&] {
    return rewritten<launch_body>(
        payload_of(launch_body{.head = {},
                               .attributes = std::span<const launch_attribute>(many),
                               .parameters = std::span<const std::byte>(large)}));
  };
  EXPECT_TRUE(read());
  many.emplace_back();
  EXPECT_FALSE(read());
  many.pop_back();
  large.emplace_back();
  EXPECT_FALSE(read());
}

TEST(launch_body, has_room_for_parameters_that_are_filled_in_behind) {
  std::vector<std::byte> buffer(300, std::byte{0xff});
  buffer.clear();  // what a buffer contained before is not sent
  wire::writer w(buffer);
  put_body(w, launch_body{.head = {.kernel = 5}, .parameters = launch_parameters::room(16)});
  for (const std::byte b : w.last(16)) EXPECT_EQ(b, std::byte{0});
  w.last(16)[3] = std::byte{9};
  wire::reader r(buffer);
  const auto read = take_body<launch_body>(r);
  ASSERT_TRUE(r.finished());
  ASSERT_EQ(read.parameters.size(), 16u);
  EXPECT_EQ(read.parameters.shown()[3], std::byte{9});
}

TEST(cluster_query_body, comes_back_as_it_was_written) {
  const sample sent;
  const std::vector<std::byte> frame =
      payload_of(cluster_query_body{.kernel = 3,
                                    .grid = {1, 2, 3},
                                    .block = {4, 5, 6},
                                    .shared = 7,
                                    .attributes = std::span<const launch_attribute>(sent.attributes)});
  EXPECT_EQ(rewritten<cluster_query_body>(frame), frame);
}

}  // namespace
}  // namespace outboard::marshal
