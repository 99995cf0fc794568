#include "marshal/cuda/node_bodies.hh"

#include <gtest/gtest.h>

#include <vector>

#include "marshal/body_testing.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::marshal {
namespace {

using testing::rewritten;

/// One node of each kind; every field has a value of its own.
std::vector<node_parameters> one_of_each() {
  const copy_side from{
      .x = 1, .y = 2, .z = 3, .level = 4, .memory = 2, .address = 6, .pitch = 8, .height = 9};
  const copy_side to{.memory = 1, .box = 5, .array = 7, .pitch = 10, .height = 11};
  return {
      {kernel_node{.context = 1,
                   .kernel = 2,
                   .grid = {3, 4, 5},
                   .block = {6, 7, 8},
                   .shared = 9,
                   .parameters = {1, 2}}},
      {copy_node{.context = 1, .from = from, .to = to, .width = 12, .height = 13, .depth = 14}},
      {memset_node{
          .context = 1, .address = 2, .pitch = 3, .value = 4, .element_size = 5, .width = 6, .height = 7}},
      {host_node{.function = 1}},
      {child_node{.graph = 1}},
      {empty_node{}},
      {wait_node{.event = 1}},
      {record_node{.event = 1}},
      {alloc_node{.allocation_type = 1,
                  .handle_types = 2,
                  .location_type = 3,
                  .location = -4,
                  .max_size = 5,
                  .usage = 6,
                  .size = 7,
                  .address = 8,
                  .access = {9, 10, 11}}},
      {free_node{.address = 1}},
      {operations_node{.context = 1, .flags = 2, .operations = {3, 4, 5, 6}}},
      {conditional_node{.context = 1, .condition = 2, .kind = -3, .size = 4}},
  };
}

get_node_reply holding(const node_parameters& node) { return {.graph = 77, .node = node}; }

TEST(node_parameters, of_every_kind_come_back_as_they_were_written) {
  const std::vector<node_parameters> all = one_of_each();
  ASSERT_EQ(all.size(), std::variant_size_v<decltype(node_parameters::node)>);
  for (const node_parameters& node : all) {
    const auto bytes = payload_of(holding(node));
    wire::reader r(bytes);
    const auto read = take_body<get_node_reply>(r);
    ASSERT_TRUE(r.finished()) << node.type();
    EXPECT_EQ(read.graph, 77u);
    EXPECT_EQ(read.node.type(), node.type());
    EXPECT_EQ(payload_of(read), bytes) << node.type();
  }
}

TEST(node_parameters, keep_each_field_to_itself) {
  const auto bytes = payload_of(holding(one_of_each()[1]));
  wire::reader r(bytes);
  const node_parameters read = take_body<get_node_reply>(r).node;
  const auto& copy = std::get<copy_node>(read.node);
  EXPECT_EQ(copy.from.x, 1u);
  EXPECT_EQ(copy.from.level, 4u);
  EXPECT_EQ(copy.from.address, 6u);
  EXPECT_EQ(copy.from.box, 0u);
  EXPECT_EQ(copy.to.box, 5u);
  EXPECT_EQ(copy.to.array, 7u);
  EXPECT_EQ(copy.to.height, 11u);
  EXPECT_EQ(copy.depth, 14u);
}

TEST(node_parameters, are_malformed_wherever_they_are_cut_short) {
  for (const node_parameters& node : one_of_each()) {
    const auto bytes = payload_of(holding(node));
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_FALSE(rewritten<get_node_reply>(std::span<const std::byte>(bytes).first(n)))
          << node.type() << " " << n;
    }
  }
}

TEST(node_parameters, with_a_bit_flipped_say_so_or_are_malformed) {
  for (const node_parameters& node : one_of_each()) {
    const auto bytes = payload_of(holding(node));
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::vector<std::byte> damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      if (const auto again = rewritten<get_node_reply>(damaged)) {
        EXPECT_EQ(*again, damaged) << node.type() << " " << bit;
      }
    }
  }
}

TEST(node_parameters, of_a_kind_that_does_not_travel_are_malformed) {
  for (const std::int32_t type : {static_cast<std::int32_t>(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL), 99, -1}) {
    std::vector<std::byte> bytes;
    wire::writer w(bytes);
    w.put<std::uint64_t>(77);
    w.put(type);
    EXPECT_FALSE(rewritten<get_node_reply>(bytes)) << type;
  }
}

}  // namespace
}  // namespace outboard::marshal
