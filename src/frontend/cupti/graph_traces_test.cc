#include "frontend/cupti/graph_traces.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::cupti {
namespace {

graph_trace node(std::uint32_t call, std::uint32_t stream, std::int64_t begin, std::int64_t end) {
  graph_trace n;
  n.call = call;
  n.graph = 3;
  n.context = 1;
  n.stream = stream;
  n.first_device = n.last_device = static_cast<std::uint32_t>(begin);
  n.begin = begin;
  n.end = end;
  return n;
}

TEST(graph_traces, are_from_the_first_nodes_begin_to_the_last_ones_end) {
  graph_traces traces;
  traces.add(node(7, 1, 30, 40));
  traces.add(node(7, 1, 10, 20));
  traces.add(node(7, 1, 32, 38));
  std::vector<graph_trace> out;
  traces.take_all(out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].begin, 10);
  EXPECT_EQ(out[0].end, 40);
  EXPECT_EQ(out[0].first_device, 10u);
  EXPECT_EQ(out[0].last_device, 30u);
  traces.take_all(out);
  EXPECT_EQ(out.size(), 1u);
}

TEST(graph_traces, are_over_when_later_work_of_their_stream_is_done) {
  graph_traces traces;
  traces.add(node(7, 1, 10, 20));
  traces.add(node(8, 2, 10, 20));
  std::vector<graph_trace> out;
  traces.take_before(7, 1, 1, out);  // the launch's own nodes
  traces.take_before(6, 1, 1, out);
  traces.take_before(9, 2, 1, out);
  EXPECT_TRUE(out.empty());
  traces.take_before(9, 1, 1, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].call, 7u);
  traces.take_all(out);
  EXPECT_EQ(out.size(), 2u);
}

}  // namespace
}  // namespace outboard::frontend::cupti
